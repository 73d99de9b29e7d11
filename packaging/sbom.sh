#!/usr/bin/env bash
# sbom.sh PROGRAM DOCUMENT: writes down of what a Go program is made, as CycloneDX 1.6. Go itself has put the modules into the
# program, with their versions and their checksums in go.sum, so nothing is guessed here.
set -euo pipefail
sha256=$(sha256sum "$1")
go version -m -json "$1" | jq --arg sha256 "${sha256%% *}" '
  def purl: "pkg:golang/\(.Path)@\(.Version | @uri)";
  def library: (.Replace // .) | {type: "library", "bom-ref": purl, name: .Path, version: .Version, purl: purl} +
    if .Sum then {properties: [{name: "go.sum", value: .Sum}]} else {} end;
  (.Settings | map({(.Key): (.Value // "")}) | add) as $set |
  {Path: "std", Version: (.GoVersion | ltrimstr("go"))} as $std |
  {
    bomFormat: "CycloneDX", specVersion: "1.6", version: 1,
    metadata: {
      timestamp: $set."vcs.time",
      component: (.Main | library + {type: "application", hashes: [{alg: "SHA-256", content: $sha256}]}),
      properties: ($set | to_entries | map({name: .key, value}))
    },
    components: ([.Deps[], $std] | map(library)),
    dependencies: [{ref: (.Main | purl), dependsOn: [.Deps[], $std | (.Replace // .) | purl]}]
  }' >"$2"
