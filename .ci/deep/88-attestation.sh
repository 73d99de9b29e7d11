#!/usr/bin/env bash
# Holds the statement of a conversion against the types and rules of in-toto and SLSA themselves, which need protobuf and so are
# no part of the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
converter
mkdir "$work/official"
cat >"$work/official/main.go" <<'END' # reads strictly: a member that the types do not have is an error
package main

import (
	"fmt"
	"os"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func check(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := &statement.Statement{}
	if err := protojson.Unmarshal(b, s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if b, err = protojson.Marshal(s.GetPredicate()); err != nil {
		return err
	}
	p := &provenance.Provenance{}
	if err := protojson.Unmarshal(b, p); err != nil {
		return err
	}
	return p.Validate()
}
END
(cd "$work/official" && go mod init official && go get github.com/in-toto/attestation@v1.1.2 && go mod tidy) >"$work/log" 2>&1 ||
  skip_rest 'the types of in-toto are not to be had'
go build -C "$work/official" -o "$work/official/check" .

start_hub hub -model org/tiny
HF_HOME=$work/home "$DF11_CONVERT" org/tiny -o "$work/out" --attestation "$work/statement.json" --quiet
"$work/official/check" "$work/statement.json" internal/metadata/testdata/statement.json

sed 's/"buildType"/"buildKind"/' "$work/statement.json" >"$work/wrong.json"
if "$work/official/check" "$work/wrong.json" 2>/dev/null; then fail 'the check finds no member that SLSA does not know'; fi
sed '0,/"sha256": "./s//"sha256": "x/' "$work/statement.json" >"$work/wrong.json"
if "$work/official/check" "$work/wrong.json" 2>/dev/null; then fail 'the check finds no digest that is none'; fi
echo 'the statement is what in-toto and SLSA ask for'
