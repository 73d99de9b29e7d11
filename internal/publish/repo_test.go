package publish_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const targetRepo = "me/target"

// A publisher publishes results of org/a, whose outputs hold their own names.
type publisher struct {
	*hubtest.Server
	t *testing.T
}

func newPublisher(t *testing.T) publisher {
	return publisher{hubtest.Start(t, hubtest.InMemory("https://hub.test", "https://storage.test")), t}
}

// open opens the target for a run of a commit of the source.
func (p publisher) open(commit string, outputs ...string) publish.Remote {
	p.t.Helper()
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: p.URL, HTTPTransport: p, Token: "hf_secret",
		Clock: hubtest.NewJumpClock(time.Now())}})
	must(p.t, err)
	run := conversionOf(commit, outputs...)
	f, err := publish.OpenFolder(p.t.Context(), filepath.Join(p.t.TempDir(), "work"), false, run, 0o600)
	must(p.t, err)
	p.t.Cleanup(func() { _ = f.Close(true) })
	push := &publish.Push{Hub: c, Repo: targetRepo, Private: new(false)}
	to, err := push.Open(p.t.Context(), run, &model.Model{Local: true}, f)
	must(p.t, err)
	return to
}

func published(name string) ledger.Output {
	return ledger.Output{Path: name, Size: int64(len(name)), SHA256: world.Sum([]byte(name)), Made: true}
}

// commit uploads outputs and commits them together.
func (p publisher) commit(to publish.Remote, l *ledger.Ledger, outputs ...string) error {
	p.t.Helper()
	var all []ledger.Output
	for _, name := range outputs {
		o := published(name)
		must(p.t, to.Upload(p.t.Context(), o, bytes.NewReader([]byte(name))))
		must(p.t, l.Add(o))
		all = append(all, o)
	}
	err := to.Commit(p.t.Context(), all, l)
	if err == nil {
		l.Committed(all)
	}
	return err
}

// finish makes the last commit, with a manifest of the source's commit.
func (p publisher) finish(to publish.Remote, commit string, outputs ...string) error {
	m := &metadata.Manifest{Schema: metadata.SchemaVersion, Source: metadata.Source{Repo: "org/a", Commit: commit},
		Plan: metadata.PlanInfo{Digest: conversionOf(commit, outputs...).Digest, Layout: "transformers", Dict: plan.DictDigest(nil), Rules: plan.Rules}}
	config := publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))
	m.Outputs = append(m.Outputs, config.OutputFile)
	r := &publish.Result{Summary: "Add a as DF11"}
	for _, name := range outputs {
		o := published(name)
		o.Committed = true
		r.Outputs = append(r.Outputs, o)
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: name, Kind: metadata.KindRemainder, Size: o.Size, SHA256: o.SHA256})
	}
	b, err := m.Marshal()
	must(p.t, err)
	r.Files = []publish.SideFile{publish.NewSideFile(names.Manifest, "", b), config}
	return to.Finish(p.t.Context(), r)
}

// make publishes a whole result.
func (p publisher) make(commit string, outputs ...string) error {
	p.t.Helper()
	to, l := p.open(commit, outputs...), ledger.New(conversionOf(commit, outputs...).Digest, false)
	_, err := to.Published(p.t.Context(), true)
	must(p.t, err)
	must(p.t, p.commit(to, l, outputs...))
	err = p.finish(to, commit, outputs...)
	return errors.Join(err, to.CleanUp(p.t.Context()))
}

// holds compares the names of the target's files.
func (p publisher) holds(what string, want ...string) {
	p.t.Helper()
	var got []string
	for name := range p.Files(targetRepo, "main") {
		if name != names.Attributes {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		p.t.Errorf("%s: main holds %q, want %q", what, got, want)
	}
}

// Commits of the source.
const (
	firstCommit  = "1111111111111111111111111111111111111111"
	secondCommit = "2222222222222222222222222222222222222222"
)

// TestUpdateOfARepo checks that an update deletes the outputs that the result has no more, and nothing
// else: not its own files, and none of the user's. Until its last commit, main holds the former result.
func TestUpdateOfARepo(t *testing.T) {
	p := newPublisher(t)
	must(t, p.make(firstCommit, "head.safetensors", "old.safetensors"))
	p.holds("the first result", "config.json", names.Manifest, "head.safetensors", "old.safetensors")
	p.Push(targetRepo, "main", map[string][]byte{"notes.md": []byte("mine")})
	before := p.Head(targetRepo, "main")
	must(t, p.make(secondCommit, "head.safetensors", "new.safetensors"))
	p.holds("the second result", "config.json", names.Manifest, "head.safetensors", "new.safetensors", "notes.md")
	if p.Commits(targetRepo, "main")[0].Parent != before {
		t.Error("main has moved by more than the last commit")
	}
}

// TestJournalsOfParts checks what earlier runs count as published: the outputs that the journal of the
// run's own part lists, and for the whole result those of all parts.
func TestJournalsOfParts(t *testing.T) {
	p := newPublisher(t)
	outputs := []string{"head.safetensors", "tail.safetensors"}
	to, l := p.open(firstCommit, outputs...), ledger.New(conversionOf(firstCommit, outputs...).Digest, false)
	must(t, p.commit(to, l, outputs[0]))
	b, err := p.ReadFile(targetRepo, "main", names.JournalDir+"/part.json")
	must(t, err)
	p.Push(targetRepo, "main", map[string][]byte{names.JournalDir + "/part-2-of-2.json": b, names.JournalDir + "/part.json": nil})
	for whole, want := range map[bool]int{true: 1, false: 0} {
		got, err := p.open(firstCommit, outputs...).Published(t.Context(), whole)
		if err != nil || len(got) != want {
			t.Errorf("whole %v: %+v, %v", whole, got, err)
		}
	}
}

// TestOthersCommitMeanwhile checks that a run looks at what others have committed before its next
// commit, and at a commit of its own whose answer was lost, on top of which may be theirs. It names
// weights that a loader would read along, and commits nothing over them.
func TestOthersCommitMeanwhile(t *testing.T) {
	const other = "other.safetensors"
	for what, lost := range map[string]bool{"between two commits": false, "on top of a lost answer": true} {
		p := newPublisher(t)
		to, l := p.open(firstCommit, "head.safetensors", "tail.safetensors"), ledger.New(conversionOf(firstCommit, "head.safetensors", "tail.safetensors").Digest, false)
		theirs := func() { p.Push(targetRepo, "main", map[string][]byte{other: []byte("theirs")}) }
		if lost {
			p.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
				hubtest.After(func(x *hubtest.Exchange) {
					theirs()
					hubtest.Error(500, "", "Internal Error")(x)
				})(x)
			}})
		}
		must(t, p.commit(to, l, "head.safetensors"))
		if !lost {
			theirs()
		}
		head := p.Head(targetRepo, "main")
		err := p.commit(to, l, "tail.safetensors")
		if conflict, _ := errors.AsType[*publish.ConflictError](err); conflict == nil || !slices.Equal(conflict.Files, []string{other}) {
			t.Errorf("%s: %v", what, err)
		}
		if p.Head(targetRepo, "main") != head {
			t.Errorf("%s: main has moved", what)
		}
	}
}

// TestWeightsNextToTheLastCommit checks that main isn't finished if someone else adds weights right
// after the last commit, which a loader would read along.
func TestWeightsNextToTheLastCommit(t *testing.T) {
	p := newPublisher(t)
	to, l := p.open(firstCommit, "head.safetensors"), ledger.New(conversionOf(firstCommit, "head.safetensors").Digest, false)
	must(t, p.commit(to, l, "head.safetensors"))
	p.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
		x.Next(x.ResponseWriter)
		p.Push(targetRepo, "main", map[string][]byte{"other.safetensors": []byte("theirs")})
	}})
	err := p.finish(to, firstCommit, "head.safetensors")
	if lost, _ := errors.AsType[*publish.LostError](err); lost == nil || !slices.Contains(lost.Files, "other.safetensors") {
		t.Errorf("got %v", err)
	}
}
