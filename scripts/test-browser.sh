#!/usr/bin/env bash
# Makes a report of two scenarios and opens it in headless Chromium: does it
# draw, offline, without a complaint? Pictures go to RATION_SCREENSHOTS, if set.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-chromium.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export RATION_REPORT="$dir/report.html"
go run ./cmd/allocator simulate sim/scenarios/flash-crowd.yaml sim/scenarios/redis-restarts-empty.yaml --runs 1 --html "$RATION_REPORT" >/dev/null
go test -C tools/browser -count=1 .
