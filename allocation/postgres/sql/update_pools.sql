UPDATE pools SET
    window_end = row.window_end, rate_tokens = row.rate_tokens,
    rate_per = row.rate_per, burst = row.burst,
    float_tokens = row.float_tokens, available = row.available, x = row.x,
    outstanding = row.outstanding, minted_at = row.minted_at,
    carry = row.carry, total_start = row.total_start,
    total_minted = row.total_minted, total_adjusted = row.total_adjusted,
    total_clamped = row.total_clamped, total_share_given = row.total_share_given,
    total_share_returned = row.total_share_returned,
    total_share_used = row.total_share_used,
    total_share_written_off = row.total_share_written_off,
    total_lump_granted = row.total_lump_granted,
    total_lump_used = row.total_lump_used,
    total_lump_returned = row.total_lump_returned,
    total_lump_written_off = row.total_lump_written_off,
    total_late_used = row.total_late_used,
    total_late_credited = row.total_late_credited, total_debt = row.total_debt,
    purged_given = row.purged_given,
    purged_share_returned = row.purged_share_returned,
    purged_share_used = row.purged_share_used,
    purged_granted = row.purged_granted, purged_used = row.purged_used,
    purged_returned = row.purged_returned,
    purged_written_off = row.purged_written_off, alarms = row.alarms
FROM unnest(
    $1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
    $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
    $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[],
    $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[],
    $28::bigint[], $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[],
    $33::bigint[], $34::bigint[], $35::bigint[]
) AS row (
    budget, window_start, window_end, rate_tokens, rate_per, burst, float_tokens,
    available, x, outstanding, minted_at, carry, total_start, total_minted, total_adjusted,
    total_clamped, total_share_given, total_share_returned, total_share_used,
    total_share_written_off, total_lump_granted, total_lump_used, total_lump_returned,
    total_lump_written_off, total_late_used, total_late_credited, total_debt, purged_given,
    purged_share_returned, purged_share_used, purged_granted, purged_used, purged_returned,
    purged_written_off, alarms
)
WHERE pools.budget = row.budget
  AND pools.window_start = row.window_start
