#!/bin/sh
# Builds hello.wasm.
cd "$(dirname "$0")" && exec ../build.sh . hello.wasm
