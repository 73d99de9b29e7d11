#!/usr/bin/env bash
# Runs the tests of encoder and verifier for 64-bit ARM in an emulator, on machines that are none: the golden vectors among them.
# Needs apt, for qemu-user-static; takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

if [ "$(uname -m)" = aarch64 ]; then
  echo 'this machine is a 64-bit ARM: the ordinary tests ran here'
  exit 0
fi
have qemu-aarch64-static || debian qemu-user-static ||
  skip_rest 'qemu-user-static is missing here: the program for ARM was built and vetted only'

for package in encoder verify; do
  GOARCH=arm64 go test -c -tags nogpu -o "$work/$package" "./$package"
  (cd "$package" && qemu-aarch64-static "$work/$package" -test.short)
done
