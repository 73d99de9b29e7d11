#!/usr/bin/env bash
# Kills the program at 50 random points, converts over a hub with 30 seeds of random faults, kills runs in a row over a wrong
# byte with 60, and stops a run at every request: each time the next run must end with the same bytes. A failure prints the
# seed; DF11_SEED repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."

export DF11_DEEP=1
go test -count=1 -timeout 30m -run '^(TestKill|TestSignals)$' ./cmd/df11-convert
go test -count=1 -timeout 30m -run '^(TestSoak|TestCancelAt.*|TestEveryRequest.*|TestSourceFailsAnywhere|TestCorruptThenKilled|TestKilledOverAWrongByte)$' ./pipeline
