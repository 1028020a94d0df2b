-- Runs step for each part of the arguments: how many keys and how many arguments
-- it has, and the arguments. A step's answer is how many values it has, and the
-- values. One that fails keeps none of the others from being done: its answer is
-- FAILED and the error.
local FAILED = -1

while arg_at < #ARGV do
  local keys, args = number(), number()
  local at, stop = #out + 1, arg_at + args
  out[at] = 0
  local done, failed = pcall(step, keys)
  if done then
    out[at] = #out - at
  else
    for i = #out, at + 1, -1 do out[i] = nil end
    out[at], out[at + 1] = FAILED, type(failed) == 'table' and failed.err or tostring(failed)
  end
  key_at, arg_at = key_at + keys, stop
end
return out
