#!/usr/bin/env bash
# notices.sh FILE: writes down the licenses and notices of all that the linker puts into the program, on any system: Go's library, and
# every module with all legal texts that its folder holds. A module without any is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$(dirname "$1")"
{
  go env GOVERSION GOROOT | paste -sd ' ' | sed 's/^/Go /'
  for system in linux darwin windows; do
    GOOS=$system go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/df11-convert
  done
} | LC_ALL=C sort -u | {
  echo 'df11-convert has the license Apache-2.0. It contains what follows, with the licenses and notices of each.'
  while read -r name version folder; do
    depth=() && [ "$name" != Go ] || depth=(-maxdepth 1)
    find "$folder" "${depth[@]}" -regextype egrep -type f -iregex '.*/(licen[sc]e|copying|notice|patents)([.-][^/]*)?' | LC_ALL=C sort >"$1.texts"
    [ -s "$1.texts" ] || { echo "$name $version has no license in $folder" >&2 && exit 1; }
    printf '\n\n======== %s %s\n\n' "$name" "$version"
    xargs -d '\n' cat <"$1.texts"
  done
} >"$1.new"
rm "$1.texts"
mv "$1.new" "$1"
