package publish

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestUpToDate checks which targets a run leaves without a plan: those that hold every file of a
// manifest of this commit, made with the same options and by no older rules, that may be seen by whom
// they are seen.
func TestUpToDate(t *testing.T) {
	const source, target, weights, head = "org/a", "me/target", "model.safetensors", "head.safetensors"
	type files = map[string][]byte
	for what, tt := range map[string]struct {
		manifest func(m *metadata.Manifest)
		source   files // that a commit changes since; nil takes a file away
		target   files
		asked    string
		private  bool // the target
		flag     *bool
		current  bool
	}{
		"the result":                {current: true},
		"next to a user's file":     {target: files{"notes.md": []byte("mine")}, current: true},
		"another commit":            {source: files{"LICENSE": []byte("mit")}},
		"of another repo":           {manifest: func(m *metadata.Manifest) { m.Source.Repo = "org/b" }},
		"older rules":               {manifest: func(m *metadata.Manifest) { m.Plan.Rules-- }},
		"newer rules":               {manifest: func(m *metadata.Manifest) { m.Plan.Rules++ }, current: true},
		"other options":             {asked: "--exact-f32"},
		"an edited output":          {target: files{head: []byte("edit")}},
		"an output of another size": {manifest: func(m *metadata.Manifest) { m.Outputs[0].Size++ }},
		"an output that went":       {target: files{head: nil}},
		"an edited config":          {target: files{"config.json": []byte("[]")}},
		"an edited copy":            {target: files{"tokenizer.json": []byte("tokenX")}},
		"other weights":             {target: files{"more.safetensors": []byte("more")}},
		"a journal":                 {target: files{".df11/part-1-of-2.json": []byte("{}")}},
		"no manifest":               {target: files{names.Manifest: nil}},
		"a broken manifest":         {target: files{names.Manifest: []byte("{")}},
		"--private, and it's open":  {flag: new(true)},
		"--private, and it is":      {flag: new(true), private: true, current: true},
		"--public, and it's open":   {flag: new(false), current: true},
		"--public, and it's not":    {flag: new(false), private: true},
		"it's more private":         {private: true, current: true},
	} {
		t.Run(what, func(t *testing.T) {
			s := hubtest.Start(t, hubtest.WithUser("hf_secret", hubtest.User{Name: "me", All: true}))
			commit := s.AddRepo(source, files{weights: []byte("weights"), "tokenizer.json": []byte("tokens")})
			m := &metadata.Manifest{Schema: metadata.SchemaVersion,
				Source: metadata.Source{Repo: source, Commit: commit, Files: []metadata.SourceFile{{Path: weights, Size: 7,
					SHA256: sumOf([]byte("weights")), Integrity: metadata.Streamed}}},
				Plan: metadata.PlanInfo{Digest: ours, Layout: "transformers", Dict: dict, Rules: plan.Rules}}
			there := files{}
			for _, f := range []SideFile{NewSideFile(head, metadata.KindRemainder, []byte("head")),
				NewSideFile("tokenizer.json", metadata.KindCopied, []byte("tokens")), NewSideFile("config.json", metadata.KindConfig, []byte("{}"))} {
				m.Outputs, there[f.Path] = append(m.Outputs, f.OutputFile), f.Data
			}
			if tt.manifest != nil {
				tt.manifest(m)
			}
			b, err := m.Marshal()
			world.Must(t, err)
			there[names.Manifest] = b
			var opts []hubtest.RepoOption
			if tt.private {
				opts = append(opts, hubtest.Private())
			}
			s.AddRepo(target, there, opts...)
			for repo, changed := range map[string]files{source: tt.source, target: tt.target} {
				if changed != nil {
					s.Push(repo, "main", changed)
				}
			}
			push := Push{Hub: clientOf(t, s), Repo: target, Private: tt.flag}
			from, err := push.Hub.Info(t.Context(), source, "")
			world.Must(t, err)
			got := push.UpToDate(t.Context(), from, push.Hub, tt.asked, 0)
			if (got != nil) != tt.current || got != nil && (got.SHA256 != sumOf(b) || got.At.Commit != s.Head(target, "main")) {
				t.Errorf("current: %+v", got)
			}
		})
	}
}
