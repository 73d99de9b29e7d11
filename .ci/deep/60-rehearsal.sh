#!/usr/bin/env bash
# Rehearses Llama-3.1-405B: plans all of it, converts one part of 126 of it from a Hub to a Hub inside one machine, and
# wants memory within 4 GB, disk within 12 GB, and the plan's prediction of disk within 10 % of what is measured. The
# upload line is slow, so that finished files pile up as far as they may. Linux only; takes 12 GB of disk and 3 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

go run ./internal/rehearsal -shard 1/126 -up 30000000 -tolerance 0.1
