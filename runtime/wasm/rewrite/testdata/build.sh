#!/bin/sh
# Rebuilds the guests of the benchmarks from src/. The results are checked in,
# so that nobody needs a compiler; where clang is missing this does nothing.
set -eu
cd "$(dirname "$0")"

# CC may name a clang with a version, as clang-14.
cc=${CC:-clang}
if ! command -v "$cc" >/dev/null; then
  echo "rewrite: skipped, $cc (Debian: clang lld) is not installed"
  exit 0
fi

# build NAME [FLAG…]: without names they are small.
build() {
  name=$1
  shift
  "$cc" --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -nostdlib -ffreestanding -fno-builtin \
    -fno-ident "$@" -Wl,--no-entry,--stack-first,-z,stack-size=65536,--strip-all \
    -o "$name.wasm" "src/$name.c"
  chmod 644 "$name.wasm"
}

build fib
build sort
build sha256
