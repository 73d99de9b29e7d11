package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// tenant is a person who keeps files of his own in the target of conversions.
type tenant struct {
	*testing.T
	srv    *hubtest.Server
	rng    *rand.Rand
	branch string
	files  map[string]string // what he has put there and not taken away
	did    []string

	hides bool // a journal or a manifest: whose the files are that it has listed cannot be known
}

const tenantRepo = "me/shared"

// tenantNames are paths of files that people have: some have the names of files of the result, some
// a loader would read.
var tenantNames = []string{
	"model-q4.gguf", "pytorch_model.bin", "notes.md", "lora/adapter_model.safetensors", "lora/adapter_config.json", "data/täble 1.csv", ".hidden",
	"sub/config.json", "sub/model.safetensors", ".df11/notes.json", ".df11/notes.md", ".gitignore", "eval/results.json", "A.SAFETENSORS", "unlisted.png",
	"README.md", "README.md", "README.md", "config.json", "tokenizer.json", "LICENSE", "df11-manifest.json", "df11.png", ".df11/part-1-of-1.json",
	"adapter_model.safetensors", "model_layers_0.safetensors", "model_layers_3.safetensors", "lm_head.safetensors", "model.safetensors",
	"model.safetensors.index.json", "generation_config.json",
}

// put puts a file there, new or in the place of another one.
func (p *tenant) put() {
	name := tenantNames[p.rng.IntN(len(tenantNames))]
	content := fmt.Sprintf("of the user, %d", p.rng.Uint64())
	// which remain ours as long as they say whose the files are
	isRecord := target.IsJournal(name) || name == names.Manifest
	if old, err := p.srv.ReadFile(tenantRepo, p.branch, name); err == nil && p.rng.IntN(2) == 0 && !isRecord {
		content = string(old) + "\n" // an edit
	}
	p.srv.Push(tenantRepo, p.branch, map[string][]byte{name: []byte(content)})
	p.files[name] = content
	p.hides = p.hides || isRecord
	p.did = append(p.did, "put "+name)
}

func (p *tenant) takeAway(name string) {
	p.srv.Push(tenantRepo, p.branch, map[string][]byte{name: nil})
	delete(p.files, name)
	p.did = append(p.did, "take away "+name)
}

// keeps fails the test if a byte of the user's is gone.
func (p *tenant) keeps() {
	p.Helper()
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if b, err := p.srv.ReadFile(tenantRepo, p.branch, name); err != nil || string(b) != p.files[name] {
			p.Fatalf("%s of the user is gone or changed (%v), after %s", name, err, strings.Join(p.did, ", "))
		}
	}
}

// run makes one run without force, which the user may disturb, and reports whether it has ended
// well. A conflict names files of the user's and no others.
func (p *tenant) run(what string, change func(*pipeline.Options)) bool {
	p.Helper()
	p.did = append(p.did, what)
	ctx, cancel := context.WithCancelCause(p.Context())
	defer cancel(nil)
	p.srv.ClearFaults()
	if p.rng.IntN(2) == 0 {
		kill, path := p.rng.IntN(3) == 0, []string{anyCommit, "/api/models/*/preupload/*", "*/info/lfs/objects/batch"}[p.rng.IntN(3)]
		p.srv.Inject(hubtest.Fault{Method: "POST", Path: path, Nth: 1 + p.rng.IntN(5), Action: func(x *hubtest.Exchange) {
			if kill {
				p.did = append(p.did, "kill")
				cancel(errStop)
			} else {
				p.put()
			}
			x.Next(x.ResponseWriter)
		}})
	}
	e := entrant{source: "org/model", change: func(o *pipeline.Options) {
		if p.branch != "main" {
			o.Push.Revision = p.branch
		}
		if change != nil {
			change(o)
		}
	}}
	err := e.convert(ctx, p.T, p.srv, testToken, tenantRepo)
	p.srv.ClearFaults()
	p.keeps()
	conflict, missing := (*target.ConflictError)(nil), (*pipeline.PartsError)(nil)
	switch {
	case errors.As(err, &conflict):
		for _, name := range slices.Concat(conflict.Files, conflict.Overwritten) {
			if _, his := p.files[name]; !his && !p.hides {
				p.Fatalf("%v, after %s", err, strings.Join(p.did, ", "))
			}
			p.takeAway(name)
		}
	case err == nil, errors.Is(err, errStop), errors.As(err, &missing):
	case strings.Contains(err.Error(), "nothing to finish"):
	default:
		p.Fatalf("%v, after %s", err, strings.Join(p.did, ", "))
	}
	return err == nil
}

// step is a random thing that happens to the target.
func (p *tenant) step() {
	switch p.rng.IntN(6) {
	case 0, 1:
		p.put()
	case 2:
		seed := uint64(1 + p.rng.IntN(3))
		recommit(p.srv, "org/model", tenantModel(seed))
		p.did = append(p.did, fmt.Sprint("source ", seed))
	case 3:
		for i := 1; i <= 2; i++ {
			part := spans.Part{I: i, N: 2}
			p.run("part "+part.String(), func(o *pipeline.Options) { o.Part = part })
		}
		p.run("finish", func(o *pipeline.Options) { o.Finish = true })
	default:
		p.run("run", nil)
	}
}

// tenantModel has as many layers as its seed, and two.
func tenantModel(seed uint64) *hubtest.Model {
	return hubtest.NewLlama(seed, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: int(seed) + 2, ShardBytes: 30_000, Extra: noPicture})
}

// TestFilesOfUsersStay: whatever files a user has in a target, puts there or edits, before a run,
// between runs or during one, every byte of them is there after every run without force. At the end
// the target holds the result, the user's files, and nothing else.
func TestFilesOfUsersStay(t *testing.T) {
	t.Parallel()
	for _, seed := range shared.Seeds(t, 16, 600) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &tenant{T: t, srv: hubtest.Start(t), rng: rand.New(rand.NewPCG(seed, 0)), branch: "main", files: map[string]string{}}
			p.srv.AddModel("org/model", tenantModel(1))
			p.srv.AddRepo(tenantRepo, nil)
			if p.rng.IntN(4) == 0 {
				p.branch = "next"
				p.srv.CreateBranch(tenantRepo, p.branch, "main")
			}
			for range 8 {
				p.step()
			}
			for try := 0; !p.run("run", nil); try++ {
				if try == 20 {
					t.Fatalf("no run ends well, after %s", strings.Join(p.did, ", "))
				}
			}
			p.holdsTheResult()
		})
	}
}

// holdsTheResult checks that the target is finished, and that nothing is left there that is neither
// the result's nor the user's.
func (p *tenant) holdsTheResult() {
	p.Helper()
	m, err := metadata.ParseManifest([]byte(content(p.T, p.srv, tenantRepo, p.branch, names.Manifest)), 0)
	if err != nil {
		p.Fatal(err)
	}
	known := map[string]bool{names.Manifest: true, ".gitattributes": true}
	for _, o := range m.Outputs {
		known[o.Path] = true
		if o.Kind == metadata.KindCard {
			continue // which may be the user's, or was taken for his
		}
		if sum := shared.Sum([]byte(content(p.T, p.srv, tenantRepo, p.branch, o.Path))); sum != o.SHA256 {
			p.Errorf("%s is not what the manifest says, after %s", o.Path, strings.Join(p.did, ", "))
		}
	}
	for name := range p.srv.Files(tenantRepo, p.branch) {
		if _, his := p.files[name]; !his && !known[name] {
			p.Errorf("%s is left there, after %s", name, strings.Join(p.did, ", "))
		}
	}
}
