#!/usr/bin/env bash
# Kills the program at 50 random points, and disturbs the runs of 600 conversions at random: kills, stops, refusals, wrong bytes,
# faults of the Hub; 300 models on five machines that share a list; and a night of 300 models on one machine, with outages, expired
# tokens, kills, and hardly any disk. Each time the last run must end with the same bytes. A
# failure prints the seed; DF11_SEED repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."

export DF11_DEEP=1
go test -count=1 -timeout 30m -run '^(TestKill|TestKillOfParameters|TestSignals|TestSlicesKilledAndFailing|TestNightsOfAList)$' ./cmd/df11-convert
go test -count=1 -timeout 30m -run '^(TestEveryConversionSurvives)$' ./internal/convert
go test -count=1 -timeout 30m -run '^(TestForgeries|TestEveryFileCounts)$' ./cmd/df11-convert # every original, every level
