#!/usr/bin/env bash
# Rehearses Llama-3.1-405B from a Hub to a Hub inside one machine, as docs/measured.md describes. Linux only; takes 14 GB of disk
# and 8 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

go test ./.ci/deep/rehearsal
rehearse() { go run ./.ci/deep/rehearsal "$@"; }

# All of it is planned, one part of 126 converted over a slow upload line, so that finished files pile up as far as they
# may: memory within 1 GB, disk within 14 GB, and neither above what the plan says, as in every rehearsal.
rehearse -shard 1/126 -up 40e6

# A quarter of every file over lines of other speeds.
rehearse -scale 2 -shard 1/126
rehearse -scale 2 -shard 1/126 -down 150e6 -up 150e6

# The same part is killed in the middle of its largest unit and started again.
rehearse -shard 1/126 -down 125e6 -kill 6e9

# All layers, units and files, scaled down: killed six times, once going on where nothing of the run before is; this is what
# docs/measured.md does at full size.
rehearse -scale 16 -disk 200e6 -memory 256e6 -kill 300e6 -kills 6 -elsewhere 1

# The same: one run, and four parts that are finished, give the same repo.
rehearse -scale 16 -finish 4 -disk 200e6 -memory 256e6

# Parts and their end within 64 MiB.
rehearse -scale 8 -layers 4 -finish 2 -compare=false -disk 200e6 -memory 67108864
