#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for the given time
# each.
set -euo pipefail
time=${1:-30s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  pkg=$(dirname "$file")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}' | while read -r target; do
    echo "$pkg $target"
    go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
