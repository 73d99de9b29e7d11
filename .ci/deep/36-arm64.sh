#!/usr/bin/env bash
# Runs the tests of the NEON loops in an emulator, for machines that are no 64-bit ARM: encoder and verifier, every variant
# against its twin in Go and against the golden vectors. That proves what the loops compute, not how fast they are. Needs apt,
# for qemu-user-static; takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "$(uname -m)" = aarch64 ]; then
  echo 'this machine has NEON: the ordinary tests ran its loops'
  exit 0
fi
if ! command -v qemu-aarch64-static >/dev/null; then
  if ! { command -v apt-get && apt-get update -q && apt-get install -q -y --no-install-recommends qemu-user-static; } >/dev/null; then
    echo '!! SKIPPED: qemu-user-static cannot be had here, so the NEON loops were built and vetted only'
    exit 0
  fi
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for package in encoder verify; do
  GOARCH=arm64 CGO_ENABLED=0 go test -c -tags nogpu -o "$scratch/$package" "./$package"
  (cd "$package" && DF11_TEST_VARIANT=neon qemu-aarch64-static "$scratch/$package" -test.short)
done
