#!/bin/sh
# Generates the Go code of api/ into the given directory (default: api itself,
# where it is committed), after linting the .proto files. The tools are built
# from source at the versions in tools/*/go.mod: the first run takes minutes,
# later ones use Go's build cache and need no network.
set -eu
cd "$(dirname "$0")/.."
out=${1:-api}
buf() { go tool -modfile=tools/buf/go.mod buf "$@"; }
buf lint api
buf generate api --template api/buf.gen.yaml --output "$out"
