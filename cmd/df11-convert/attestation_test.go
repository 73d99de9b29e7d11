package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// attested is a conversion in a repo and in a folder, with the statement that was written about it.
type attested struct {
	*hubtest.Server
	dir, folder, file string // file is the statement
	commit            string // of the source
	files             map[string][]byte
	statement         metadata.Statement
}

const attestedRepo, attestedSource = "tester/model-DF11", "org/model"

func attest(t *testing.T) *attested {
	t.Helper()
	dir := t.TempDir()
	a := &attested{Server: hubtest.Start(t), dir: dir, folder: filepath.Join(dir, "df11"), file: filepath.Join(dir, "statement.json"), files: map[string][]byte{}}
	t.Setenv("HF_ENDPOINT", a.URL)
	t.Setenv("HF_HOME", filepath.Join(dir, "home"))
	t.Setenv("HF_TOKEN", "hf_test")
	m := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, ExtraFiles: true})
	a.commit = a.AddRepo(attestedSource, m.Files())
	must(t, attestedSource, "-o", a.folder, "--push", "--repo-id", attestedRepo, "--attestation", a.file, "--attested-by", "me/my_models")
	for name, text := range contents(t, a.folder) {
		a.files[name] = []byte(text)
	}
	if err := json.Unmarshal(mustRead(t, a.file), &a.statement); err != nil {
		t.Fatal(err)
	}
	return a
}

// verify verifies a repo or a folder at level structure, which reads no weight of a repo, against an attestation.
func (a *attested) verify(t *testing.T, model string, attestation []byte) (code int, out, diag string) {
	t.Helper()
	file := filepath.Join(a.dir, "attestation")
	writeTo(t, file, attestation)
	return program(t, "verify", model, "--level", "structure", "--attestation", file, "--all", "--json")
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// inEnvelope and inBundle are a statement as signers give it back. The bundle has the members of a real one.
func inEnvelope(statement []byte, signatures int) []byte {
	sigs := slices.Repeat([]map[string]string{{"sig": "MEUCIQ==", "keyid": ""}}, signatures)
	b, _ := json.Marshal(map[string]any{"payload": statement, "payloadType": "application/vnd.in-toto+json", "signatures": sigs})
	return b
}

// urlSafe writes the payload of an envelope in the other alphabet of base64.
func urlSafe(envelope []byte) []byte {
	head, payload, _ := bytes.Cut(envelope, []byte(`"payload":"`))
	payload, tail, _ := bytes.Cut(payload, []byte(`"`))
	payload = []byte(strings.NewReplacer("+", "-", "/", "_").Replace(string(payload)))
	return slices.Concat(head, []byte(`"payload":"`), payload, []byte(`"`), tail)
}

func inBundle(statement []byte) []byte {
	return fmt.Appendf(nil, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"tlogEntries":`+
		`[{"logIndex":"1"}],"certificate":{"rawBytes":"MIIG"}},"dsseEnvelope":%s}`, inEnvelope(statement, 1))
}

// TestAttestationNamesEveryFile: the statement has every file of the result with the sha256 of its bytes, every weight file of
// the source with the sha256 that the Hub publishes, the source's commit, and the program that ran.
func TestAttestationNamesEveryFile(t *testing.T) {
	a := attest(t)
	named := map[string]string{}
	for _, s := range a.statement.Subject {
		named[s.Name] = s.Digest["sha256"]
	}
	for name, b := range a.files {
		if named[name] != sumOf(b) {
			t.Errorf("%s: sha256 is %s, the statement has %q", name, sumOf(b), named[name])
		}
		delete(named, name)
	}
	if len(named) > 0 {
		t.Errorf("no such files: %v", named)
	}
	var manifest metadata.Manifest
	if err := json.Unmarshal(a.files[metadata.ManifestName], &manifest); err != nil {
		t.Fatal(err)
	}
	deps := a.statement.Predicate.BuildDefinition.Dependencies
	if want := "pkg:huggingface/org/model@" + a.commit; deps[0].URI != want || deps[0].Digest["gitCommit"] != a.commit {
		t.Errorf("made of %+v, want %s", deps[0], want)
	}
	if len(deps) != 1+len(manifest.Source.Files) || len(deps) < 3 {
		t.Errorf("%d dependencies of %d source files", len(deps), len(manifest.Source.Files))
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, program := a.statement.Builder(); program != sumOf(mustRead(t, me)) {
		t.Errorf("made by a program with sha256 %s, which is not this one's", program)
	}
	card := string(a.files["README.md"])
	if !strings.Contains(card, "gh attestation verify df11-manifest.json --repo me/my_models") || !strings.Contains(card, `[me/my\_models](https://github.com/me/my_models/attestations)`) {
		t.Errorf("the card does not name the signer:\n%s", card)
	}
}

// TestEveryFormOfAnAttestation: a bare statement, an envelope, a bundle, and lines of bundles among which are statements of
// other kinds and of other models, are all read, and the result says whether there was a signature, and that it is not verified.
func TestEveryFormOfAnAttestation(t *testing.T) {
	a := attest(t)
	bare := mustRead(t, a.file)
	other := bytes.ReplaceAll(bare, []byte(a.statement.Subject[0].Digest["sha256"]), []byte(sumOf([]byte("x"))))
	other = bytes.ReplaceAll(other, []byte(sumOf(a.files[metadata.ManifestName])), []byte(sumOf([]byte("y"))))
	foreign := []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"1"}}],
		"predicateType":"https://slsa.dev/provenance/v1","predicate":{"buildDefinition":{"buildType":"https://example.org/x","resolvedDependencies":7}}}`)
	signed, unsigned := "gh attestation verify", "none: anybody could have written"
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"bare", bare, unsigned},
		{"envelope", inEnvelope(bare, 2), signed},
		{"envelope without signature", inEnvelope(bare, 0), unsigned},
		{"URL-safe alphabet", urlSafe(inEnvelope(bare, 1)), signed},
		{"bundle", inBundle(bare), signed},
		{"lines", bytes.Join([][]byte{inBundle(foreign), inBundle(bare), inBundle(other), foreign}, []byte("\n")), signed},
	} {
		file := filepath.Join(a.dir, "form")
		writeTo(t, file, c.data)
		for _, model := range []string{attestedRepo, a.folder} {
			code, out, diag := program(t, "verify", model, "--level", "structure", "--attestation", file)
			if code != exitOK || !strings.Contains(out, ": all are as it says") || !strings.Contains(out, c.says) {
				t.Errorf("%s, %s: exit %d: %s%s", c.name, model, code, out, diag)
			}
		}
	}
	if code, out, diag := a.verify(t, attestedRepo, inBundle(bare)); code != exitOK || !strings.Contains(out, `"signatures": 1`) {
		t.Errorf("exit %d: %s%s", code, out, diag)
	}
}

// TestAttestationWithholdsNoDifference: whatever of a model changes after its attestation, file by file, the manifest with it or
// not, the check fails, and names the file with what was attested and what is there.
func TestAttestationWithholdsNoDifference(t *testing.T) {
	a := attest(t)
	statement := mustRead(t, a.file)
	var manifest metadata.Manifest
	if err := json.Unmarshal(a.files[metadata.ManifestName], &manifest); err != nil {
		t.Fatal(err)
	}
	expect := func(what, model string, want ...string) {
		t.Helper()
		code, out, diag := a.verify(t, model, statement)
		if code != exitWrong || !strings.Contains(out, `"kind": "invalid"`) {
			t.Errorf("%s: exit %d: %s%s", what, code, out, diag)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no word of %q: %s", what, w, out)
			}
		}
	}
	publish := func(repo string, files map[string][]byte, m metadata.Manifest) string {
		files = maps.Clone(files)
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		files[metadata.ManifestName] = b
		a.AddRepo(repo, files)
		return repo
	}
	for i, o := range manifest.Outputs {
		changed, m := maps.Clone(a.files), manifest
		changed[o.Path] = spoiled(o.Path, a.files[o.Path])
		m.Outputs = slices.Clone(manifest.Outputs)
		m.Outputs[i].SHA256, m.Outputs[i].Size = sumOf(changed[o.Path]), int64(len(changed[o.Path]))
		expect("changed with its manifest", publish(fmt.Sprintf("tester/changed%d", i), changed, m), o.Path, o.SHA256, m.Outputs[i].SHA256)

		delete(changed, o.Path)
		m.Outputs = slices.Delete(m.Outputs, i, i+1)
		m.Units = slices.DeleteFunc(slices.Clone(m.Units), func(u metadata.Unit) bool { return u.File == o.Path })
		expect("dropped with its manifest", publish(fmt.Sprintf("tester/dropped%d", i), changed, m), o.Path+": in the attestation", o.SHA256)

		if o.Kind == metadata.KindUnit { // the manifest stays as it was
			writeTo(t, filepath.Join(a.folder, o.Path), spoiled(o.Path, a.files[o.Path]))
			expect("changed in the folder", a.folder, o.Path, o.SHA256, sumOf(spoiled(o.Path, a.files[o.Path])))
			writeTo(t, filepath.Join(a.folder, o.Path), a.files[o.Path])
		}
	}
	more, m := maps.Clone(a.files), manifest
	more["more.safetensors"] = []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")
	m.Outputs = append(slices.Clone(manifest.Outputs), metadata.OutputFile{Path: "more.safetensors", Kind: metadata.KindRemainder, Size: 10, SHA256: sumOf(more["more.safetensors"])})
	expect("added with its manifest", publish("tester/more", more, m), "more.safetensors: in the manifest but not in the attestation")
	none := maps.Clone(a.files)
	delete(none, metadata.ManifestName)
	a.AddRepo("tester/none", none)
	if code, out, diag := program(t, "verify", "tester/none", "--against", attestedSource, "--level", "structure", "--attestation", a.file); code != exitWrong || !strings.Contains(diag, "df11-manifest.json: in the attestation but not there") {
		t.Errorf("no manifest: exit %d: %s%s", code, out, diag)
	}
	other := hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000})
	a.AddRepo("org/other", other.Files())
	must(t, "org/other", "--push", "--repo-id", "tester/other-DF11")
	expect("another model", "tester/other-DF11", "lm_head.safetensors", "original: pkg:huggingface/org/model@", "original: pkg:huggingface/org/other@")
	if code, out, diag := a.verify(t, a.folder, statement); code != exitOK {
		t.Errorf("nothing changed: exit %d: %s%s", code, out, diag)
	}
}

// TestAttestationNeverVouchesForAnEditedCard: a card that was edited or removed is no fault of the model, but nobody is told that
// all files are as attested.
func TestAttestationNeverVouchesForAnEditedCard(t *testing.T) {
	a := attest(t)
	for name, change := range map[string]func(map[string][]byte){
		"edited":  func(files map[string][]byte) { files["README.md"] = append(files["README.md"], "mine"...) },
		"removed": func(files map[string][]byte) { delete(files, "README.md") },
	} {
		files := maps.Clone(a.files)
		files["README.md"] = bytes.Clone(files["README.md"])
		change(files)
		a.AddRepo("tester/"+name, files)
		out := must(t, "verify", "tester/"+name, "--level", "structure", "--attestation", a.file)
		if strings.Contains(out, "all are as it says") || !strings.Contains(out, "all but 1 file that no loader reads are as it says") ||
			!strings.Contains(out, "warning      README.md is ") {
			t.Errorf("%s card: %s", name, out)
		}
	}
}

// TestChangedAttestationIsFound: whatever digest of the statement is changed, that of a file, of the source's files, or its
// commit, and whatever file it leaves out or adds, the check names it.
func TestChangedAttestationIsFound(t *testing.T) {
	a := attest(t)
	expect := func(s metadata.Statement, name, digest string) {
		t.Helper()
		b, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		code, out, diag := a.verify(t, attestedRepo, b)
		if code != exitWrong || !strings.Contains(out, name) || !strings.Contains(out, digest) {
			t.Errorf("%s: exit %d: %s%s", name, code, out, diag)
		}
	}
	const sum, commit = "9ecb36561341d18eb65484e833efea61edc74b84cf5e6ae1b81c63533e25fc8f", "9ecb36561341d18eb65484e833efea61edc74b84"
	for i, r := range a.statement.Subject {
		s := a.statement
		s.Subject = slices.Clone(s.Subject)
		s.Subject[i].Digest = map[string]string{"sha256": sum}
		expect(s, r.Name, sum)
		s.Subject = slices.Delete(s.Subject, i, i+1)
		expect(s, r.Name+": in the manifest but not in the attestation", "")
	}
	s := a.statement
	s.Subject = append(slices.Clone(s.Subject), metadata.Resource{Name: "more", Digest: map[string]string{"sha256": sum}})
	expect(s, "more: in the attestation", sum)
	for i, r := range a.statement.Predicate.BuildDefinition.Dependencies {
		s := a.statement
		made := &s.Predicate.BuildDefinition
		made.Dependencies = slices.Clone(made.Dependencies)
		made.Dependencies[i].Digest = map[string]string{"sha256": sum, "gitCommit": commit}
		expect(s, "original: "+r.URI+r.Name, commit)
		made.Dependencies = slices.Delete(made.Dependencies, i, i+1)
		expect(s, "original: "+r.URI+r.Name+": in the manifest but not in the attestation", "")
	}
	s = a.statement
	s.Predicate.BuildDefinition.Parameters.Plan.Digest = sum
	expect(s, metadata.ManifestName, sum)
}

// TestBrokenAttestationAccusesNobody: a file that is no attestation, cut, too large or of another kind, is an error about that
// file, before the model is opened. It is never taken for a fault of the model.
func TestBrokenAttestationAccusesNobody(t *testing.T) {
	a := attest(t)
	bare := mustRead(t, a.file)
	huge := filepath.Join(a.dir, "huge")
	writeTo(t, huge, nil)
	if err := os.Truncate(huge, metadata.MaxAttestationBytes+1); err != nil {
		t.Fatal(err)
	}
	twice := strings.Replace(string(bare), `"subject": [`, `"subject": [{"name":"README.md","digest":{"sha256":"`+sumOf(nil)+`"}},`, 1)
	outside := strings.Replace(string(bare), `"README.md"`, `"../README.md"`, 1)
	broken := map[string]string{
		"empty": "", "no JSON": "sha256", "list": "[]", "object": "{}", "text": `"_type"`,
		"other payload":   `{"payloadType":"text/plain","payload":"aGVsbG8=","signatures":[]}`,
		"no base64":       `{"payloadType":"application/vnd.in-toto+json","payload":"%%%","signatures":[]}`,
		"no statement":    `{"payloadType":"application/vnd.in-toto+json","payload":"aGVsbG8=","signatures":[]}`,
		"old statement":   strings.Replace(string(bare), "Statement/v1", "Statement/v0.1", 1),
		"other build":     strings.Replace(string(bare), "#attestation", "#other", 1),
		"other name":      strings.Replace(string(bare), "slsa.dev/provenance/v1", "slsa.dev/provenance/v0.2", 1),
		"named twice":     twice,
		"leaves the repo": outside,
		"no sha256":       strings.Replace(string(bare), `"sha256": "`, `"sha256": "x`, 1),
		"two envelopes":   strings.Replace(string(inBundle(bare)), "{", string(inEnvelope(bare, 0)[:len(inEnvelope(bare, 0))-1])+",", 1),
		"many objects":    strings.Repeat("{}", 1<<20),
		"deep":            strings.Repeat(`{"dsseEnvelope":`, 1<<16),
		"deep envelope":   string(inEnvelope([]byte(strings.Repeat("[", 1<<16)), 1)),
	}
	for n := 1; n < len(bare)-1; n += len(bare) / 7 {
		broken[fmt.Sprint("first bytes ", n)] = string(bare[:n])
		b := inBundle(bare)
		broken[fmt.Sprint("first bytes of a bundle ", n)] = string(b[:n])
		broken[fmt.Sprint("second line cut at ", n)] = string(append(inBundle(bare), b[:n]...))
	}
	a.ResetLog()
	for name, text := range broken {
		if code, out, diag := a.verify(t, attestedRepo, []byte(text)); code != exitError || !strings.Contains(diag, "--attestation") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, diag)
		}
	}
	for _, file := range []string{huge, filepath.Join(a.dir, "missing"), a.dir} {
		if code, _, diag := program(t, "verify", attestedRepo, "--attestation", file); code != exitError || !strings.Contains(diag, filepath.Base(file)) {
			t.Errorf("%s: exit %d: %s", file, code, diag)
		}
	}
	if n := len(a.Requests()); n > 0 {
		t.Errorf("the Hub was asked %d times", n)
	}
}

// TestAttestationAlone: the same command writes the statement of a model that is complete, the same bytes; where it cannot be
// written the command fails and says that the model is complete. Parts have none.
func TestAttestationAlone(t *testing.T) {
	a := attest(t)
	again := filepath.Join(a.dir, "again.json")
	convert := []string{attestedSource, "-o", a.folder, "--push", "--repo-id", attestedRepo, "--attested-by", "me/my_models"}
	must(t, append(convert, "--attestation", again)...)
	if !bytes.Equal(mustRead(t, again), mustRead(t, a.file)) {
		t.Error("a second run writes another statement")
	}
	code, _, diag := program(t, append(convert, "--attestation", filepath.Join(a.dir, "no", "folder"))...)
	if code != exitError || !strings.Contains(diag, "the model is complete") {
		t.Errorf("exit %d: %s", code, diag)
	}
	for _, args := range [][]string{
		{"--attested-by", "me/it"}, {"--attestation", again, "--attested-by", "me"},
		{"--attestation", again, "--push", "--shard", "1/2"},
	} {
		if code, _, diag := program(t, append([]string{attestedSource}, args...)...); code != exitUsage || !strings.Contains(diag, "--attest") {
			t.Errorf("%v: exit %d: %s", args, code, diag)
		}
	}
}
