#!/bin/sh
# Translates the kernel, and the plugin that the tests use. Both are checked in,
# so that nobody else needs wat2wasm and clang; without them this does nothing.
set -eu
cd "$(dirname "$0")"

if command -v wat2wasm >/dev/null; then
  wat2wasm kernel.wat -o kernel.wasm
  chmod 644 kernel.wasm
else
  echo "extismabi: the kernel is left as it is, wat2wasm (Debian: wabt) is not installed"
fi

if command -v clang >/dev/null && command -v wasm-ld >/dev/null; then
  clang --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -nostdlib -ffreestanding -fno-builtin \
    -fno-ident -Wl,--no-entry,--stack-first,-z,stack-size=16384,--strip-all \
    -o testdata/probe.wasm testdata/probe.c
  chmod 644 testdata/probe.wasm
else
  echo "extismabi: the test plugin is left as it is, clang and wasm-ld (Debian: clang lld) are not installed"
fi
