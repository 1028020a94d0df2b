#!/bin/sh
# Fails, with the difference, if the committed code of api/ is not what its
# .proto files generate.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/generate.sh "$fresh"
if ! diff -ru --exclude='*.proto' --exclude='buf*.yaml' "$fresh" api; then
	echo 'The generated code in api/ is not current: run tools/generate.sh and commit.' >&2
	exit 1
fi
