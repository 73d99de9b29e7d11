#!/usr/bin/env bash
# Counts the requests of the program for each kind of model, and rehearses a week of 1,000 models on 20 machines in simulated time, as
# docs/measured.md says.
set -euo pipefail
cd "$(dirname "$0")/../.."
go run ./.ci/deep/week
