#!/usr/bin/env bash
# Installs the browser that the report's test opens: Debian's chromium, with a
# font. Does nothing where one is there. Uses apt; on a system without it, says
# what to install.
set -euo pipefail

for name in chromium chromium-browser google-chrome google-chrome-stable headless-shell; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if ! command -v apt-get >/dev/null 2>&1; then
  echo "the report's test opens it in a browser: install chromium, then run this again" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "run as root, or install: chromium" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing chromium"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
command -v chromium >/dev/null 2>&1 || { echo "installed chromium, but it is not on PATH" >&2; exit 1; }
