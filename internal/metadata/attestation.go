package metadata

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/internal/pyjson"
)

// MaxAttestationBytes bounds a file of attestations. Signers take statements of up to 16 MiB, which base64 makes a third larger.
const MaxAttestationBytes = 32 << 20

const payloadType = "application/vnd.in-toto+json"

// Attestation is a statement as it was found in a file.
type Attestation struct {
	Statement
	Signatures int // of its envelope; nobody has verified them here
}

// document is any JSON text of a file of attestations: a bare statement, a DSSE envelope, or a Sigstore bundle that holds one.
type document struct {
	envelope
	Bundled envelope `json:"dsseEnvelope"`
}

// envelope is a DSSE envelope.
type envelope struct {
	PayloadType string            `json:"payloadType"`
	Payload     string            `json:"payload"`
	Signatures  []json.RawMessage `json:"signatures"`
}

// ParseAttestations reads a file of attestations: one or more JSON texts, each a statement, a DSSE envelope, or a Sigstore
// bundle. It gives those about conversions, of which there must be one; others may be about the same files.
func ParseAttestations(data []byte) (found []Attestation, err error) {
	if err := pyjson.Bounded(data, maxObjects, maxValues); err != nil {
		return nil, err
	}
	others := 0
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var text json.RawMessage
		if err := d.Decode(&text); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("not JSON after %d bytes: %w", d.InputOffset(), err)
		}
		payload, signatures, err := open(text)
		if err != nil {
			return nil, err
		}
		s, err := parseStatement(payload)
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			others++
		default:
			found = append(found, Attestation{*s, signatures})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("it holds no statement about a conversion by df11-convert (%d of other kinds)", others)
	}
	return found, nil
}

// open gives the statement that a JSON text is or holds, and the number of its signatures.
func open(text []byte) (payload []byte, signatures int, err error) {
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, 0, err
	}
	e := doc.envelope
	if e.PayloadType == "" {
		e = doc.Bundled
	} else if doc.Bundled.PayloadType != "" { // a signature of one would seem to cover the other
		return nil, 0, errors.New("an envelope within an envelope")
	}
	switch e.PayloadType {
	case "":
		return text, 0, nil
	case payloadType:
		std := strings.NewReplacer("-", "+", "_", "/").Replace(e.Payload) // both alphabets are allowed
		payload, err = base64.StdEncoding.DecodeString(std)
		return payload, len(e.Signatures), err
	}
	return nil, 0, fmt.Errorf("the envelope holds %q, not %s", e.PayloadType, payloadType)
}

// parseStatement gives nil for a statement of another kind.
func parseStatement(data []byte) (*Statement, error) {
	if err := pyjson.Bounded(data, maxObjects, maxValues); err != nil {
		return nil, err
	}
	var kind struct {
		Type      string `json:"_type"`
		Predicate struct {
			Build struct {
				Type json.RawMessage `json:"buildType"`
			} `json:"buildDefinition"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(data, &kind); err != nil && !isTypeError(err) {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if kind.Type != statementType || string(kind.Predicate.Build.Type) != `"`+buildType+`"` {
		return nil, nil //nolint:nilnil // as promised
	}
	s := &Statement{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	return s, s.check()
}

func isTypeError(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// check refuses a statement that could be read in two ways.
func (s *Statement) check() error {
	if s.PredicateType != predicateType {
		return fmt.Errorf("statement: predicate %q, want %s", s.PredicateType, predicateType)
	}
	seen := map[string]bool{}
	for _, r := range s.Subject {
		if err := checkFile(r.Name, 0, seen); err != nil {
			return fmt.Errorf("statement: subject: %w", err)
		}
		if !isSHA256(r.Digest["sha256"]) {
			return fmt.Errorf("statement: subject %q: %.70q is no sha256", r.Name, r.Digest["sha256"])
		}
	}
	b := s.Predicate.RunDetails.Builder
	if len(b.Version) != 1 || len(b.Dependencies) != 1 {
		return errors.New("statement: it must have one builder, with one executable")
	}
	clear(seen)
	for _, r := range s.Predicate.BuildDefinition.Dependencies {
		name := cmp.Or(r.URI, r.Name)
		if seen[name] {
			return fmt.Errorf("statement: dependency %q is listed twice", name)
		}
		seen[name] = true
	}
	return nil
}
