package metadata_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
)

// TestStatementGolden: the statement of a manifest is testdata/statement.json, which .ci/deep/88-attestation.sh holds against the
// types of in-toto itself. Read back, it differs in nothing from what it was made of.
func TestStatementGolden(t *testing.T) {
	s := testManifest().Statement(sum("a"), sum("b"))
	got, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "statement.json", got)
	as, err := metadata.ParseAttestations(got)
	if err != nil || len(as) != 1 || !reflect.DeepEqual(&as[0].Statement, s) {
		t.Fatalf("read back %+v, %v", as, err)
	}
	if ds := as[0].Differences(s); len(ds) > 0 {
		t.Errorf("differs from itself: %v", ds)
	}
	if program, sha := s.Builder(); program != "df11-convert v1.2.3" || sha != sum("b") {
		t.Errorf("made by %s, %s", program, sha)
	}
}

// TestStatementNamesAFileOnce: a statement that names a file twice with two sums is refused, wherever the right one stands.
func TestStatementNamesAFileOnce(t *testing.T) {
	should := testManifest().Statement(sum("a"), sum("b"))
	for i := range should.Subject {
		wrong := metadata.Resource{Name: should.Subject[i].Name, Digest: map[string]string{"sha256": sum("c")}}
		for _, at := range []int{0, len(should.Subject)} {
			s := *should
			s.Subject = slices.Insert(slices.Clone(should.Subject), at, wrong)
			b, err := s.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := metadata.ParseAttestations(b); err == nil || !strings.Contains(err.Error(), "listed twice") {
				t.Errorf("%s named again at %d: %v", wrong.Name, at, err)
			}
		}
	}
}

// FuzzParseAttestations: any file is read or refused; what is read is written as it was read.
func FuzzParseAttestations(f *testing.F) {
	bare, err := testManifest().Statement(sum("a"), sum("b")).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bare)
	f.Add(append(bytes.Clone(bare), bare...))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{}]}`))
	f.Add([]byte(`{"dsseEnvelope":{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		as, err := metadata.ParseAttestations(data)
		if err == nil && len(as) == 0 {
			t.Fatal("neither a statement nor an error")
		}
		for _, a := range as {
			b, err := a.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := metadata.ParseAttestations(b); err != nil || len(again[0].Differences(&a.Statement)) > 0 {
				t.Errorf("%s is not read as it was: %v", b, err)
			}
		}
	})
}
