#!/usr/bin/env bash
# Runs the tests of the NEON loops in an emulator, for machines that are no 64-bit ARM: encoder and verifier, every variant
# against its twin in Go and against the golden vectors. That proves what the loops compute, not how fast they are. Needs apt,
# for qemu-user-static; takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

if [ "$(uname -m)" = aarch64 ]; then
  echo 'this machine has NEON: the ordinary tests ran its loops'
  exit 0
fi
have qemu-aarch64-static || debian qemu-user-static ||
  skip_rest 'qemu-user-static is not to be had here: the NEON loops were built and vetted only'

for package in encoder verify; do
  GOARCH=arm64 go test -c -tags nogpu -o "$work/$package" "./$package"
  (cd "$package" && DF11_TEST_VARIANT=neon qemu-aarch64-static "$work/$package" -test.short)
done
