#!/usr/bin/env bash
# Reads a list of models on standard input, writes a JSON matrix: [{"source": "org/name", "target": ""}, …].
# One source a line, an optional target after white space, # starts a comment. A line of another form is an error, and so
# is a source that is listed twice.
set -euo pipefail

name='[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*'
number=0
declare -A seen=()
json='['
while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  line=${line%%#*}
  read -r -a words <<<"${line%$'\r'}"
  [ "${#words[@]}" -gt 0 ] || continue
  source=${words[0]} target=${words[1]-}
  if [ "${#words[@]}" -gt 2 ] ||
    ! [[ $source =~ ^$name(@[A-Za-z0-9][A-Za-z0-9._/-]*)?$ ]] ||
    ! [[ -z $target || $target =~ ^$name$ ]]; then
    printf 'line %d: want "org/name[@revision] [org/target]"\n' "$number" >&2
    exit 1
  fi
  if [ -n "${seen[$source]-}" ]; then
    printf 'line %d: %s is listed twice\n' "$number" "$source" >&2
    exit 1
  fi
  seen[$source]=1
  [ "$json" = '[' ] || json+=','
  json+="{\"source\":\"$source\",\"target\":\"$target\"}"
done
printf '%s]\n' "$json"
