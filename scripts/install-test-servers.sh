#!/usr/bin/env bash
# Installs what the tests start themselves: Postgres 15 or later and Redis 7 or
# later. Does nothing where both are there. Uses apt; on a system without it,
# says what to install.
set -euo pipefail

have_postgres() {
  command -v initdb >/dev/null 2>&1 || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}
have_redis() {
  command -v redis-server >/dev/null 2>&1 && command -v redis-sentinel >/dev/null 2>&1
}

missing=()
have_postgres || missing+=(postgresql)
have_redis || missing+=(redis-server redis-sentinel)
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "the tests start their own servers and need: ${missing[*]}" >&2
  echo "install PostgreSQL 15+ (initdb, postgres on PATH) and Redis 7+ (redis-server, redis-sentinel on PATH), then run this again" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "run as root, or install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
have_postgres && have_redis || { echo "installed ${missing[*]}, but initdb, redis-server or redis-sentinel is still not found" >&2; exit 1; }
