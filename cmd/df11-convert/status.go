package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/target"
)

// What is published of a model.
const (
	stateCurrent    = "current"    // made of the newest commit of its source
	stateOutdated   = "outdated"   // made of another commit
	stateUnfinished = "unfinished" // a conversion has begun
	stateMissing    = "missing"    // no repo, or nothing in it
	stateForeign    = "foreign"    // a repo that df11-convert did not make
	stateLocal      = "local"      // the source is no repo, so it has no commits to compare
)

// publication is what the two repos say of one model, without reading a weight.
type publication struct {
	Source    string   `json:"source"`
	Target    string   `json:"target,omitempty"`
	State     string   `json:"state,omitempty"`
	Todo      bool     `json:"todo"`                       // batch would convert it
	Newest    string   `json:"newest_commit,omitempty"`    // of the source
	Converted string   `json:"converted_commit,omitempty"` // that the target was made of
	Tool      string   `json:"tool_version,omitempty"`     // that made it
	Weights   int64    `json:"weights_verified,omitempty"` // when it was made
	GPU       bool     `json:"gpu,omitempty"`              // which decoded them as well
	Error     *failure `json:"error,omitempty"`
}

func statusCommand(u *ui) *cobra.Command {
	var f convertFlags // which a list completes
	c := &cobra.Command{
		Use:   "status LIST",
		Short: "Compare a list of models with what is published of them",
		Long: `status reads the list that batch takes, and for each model two small files: which commit of the source is published, which
is the newest, and how the published one was verified when it was made. It changes nothing. The exit code is 0 if all models
are current, or kept as they are by refresh: never, else 1.`,
		Example: `  df11-convert status models.yaml
  df11-convert status models.yaml --json`,
		Args: exactArgs(1, "LIST"),
		RunE: func(c *cobra.Command, args []string) error { return runStatus(c.Context(), u, &f, args[0]) },
	}
	f.sourceFlags.register(c.Flags())
	return c
}

func runStatus(ctx context.Context, u *ui, f *convertFlags, list string) error {
	models, err := readList(list, f)
	if err != nil {
		return err
	}
	f.clients = map[string]*hub.Client{}
	found, todo := []publication{}, 0
	for _, m := range models {
		flags := m.flags(*f)
		p, err := flags.published(ctx, u, m.spec())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.Error = failureOf(err)
		}
		if p.Todo = !m.skips(p) && p.State != stateLocal; p.Todo {
			todo++
		}
		found = append(found, p)
	}
	u.result(map[string]any{"models": found}, "", func(w io.Writer) { printStatus(w, found) })
	if todo > 0 {
		return notCurrentError{todo, len(found)}
	}
	return nil
}

// notCurrentError says that a list has models that are not published as they are now.
type notCurrentError struct{ n, of int }

func (e notCurrentError) Error() string {
	return fmt.Sprintf("%d of %d models are not published as they are now", e.n, e.of)
}

// published compares the commit that a target was made of with the newest one of its source, and keeps that for a conversion.
func (f *convertFlags) published(ctx context.Context, u *ui, spec string) (p publication, err error) {
	p = publication{Source: spec}
	if model.Exists(spec) {
		p.State = stateLocal
		return p, nil
	}
	c, repo, revision, err := f.repo(u, "source", spec)
	if err != nil {
		return p, err
	}
	source, err := c.Info(ctx, repo, revision)
	if err != nil {
		return p, err
	}
	p.Newest, f.newest = source.SHA, source
	t, err := f.client(u, "target")
	if err != nil {
		return p, err
	}
	_, name, _ := strings.Cut(source.ID, "/")
	push, err := f.target.publishTo(ctx, u, t, name+"-DF11")
	if err != nil {
		return p, err
	}
	p.Target = push.Repo
	there, err := t.Info(ctx, push.Repo, cmp.Or(push.Revision, "main"))
	if errors.Is(err, hub.ErrNotFound) || errors.Is(err, hub.ErrRevisionNotFound) {
		p.State = stateMissing
		return p, nil
	}
	if err != nil {
		return p, err
	}
	return p, p.read(ctx, t, there)
}

// read takes what the target says of itself.
func (p *publication) read(ctx context.Context, c *hub.Client, there *hub.RepoInfo) error {
	has := func(is func(path string) bool) bool {
		return slices.ContainsFunc(there.Files, func(f hub.FileInfo) bool { return is(f.Path) })
	}
	manifest, finished := there.File(metadata.ManifestName)
	if !finished {
		p.State = stateMissing
		if has(target.IsJournal) {
			p.State = stateUnfinished
		} else if has(func(path string) bool {
			return strings.HasPrefix(path, "config.json") || strings.HasPrefix(path, "model")
		}) {
			p.State = stateForeign
		}
		return nil
	}
	b, err := c.ReadFile(ctx, manifest, model.MaxManifestBytes)
	if err != nil {
		return err
	}
	m, err := metadata.ParseManifest(b)
	if err != nil {
		return err
	}
	p.Converted, p.Tool, p.State = m.Source.Commit, m.Tool.Version, stateOutdated
	if p.Converted == p.Newest {
		p.State = stateCurrent
	}
	for _, v := range m.Verification {
		p.Weights = max(p.Weights, v.NWeights)
		p.GPU = p.GPU || v.Device != ""
	}
	return nil
}

// skips reports whether a model of a batch need not be converted.
func (m listedModel) skips(p publication) bool {
	return p.State == stateCurrent || m.Refresh == refreshNever && p.State == stateOutdated
}

func printStatus(w io.Writer, found []publication) {
	t := newTable(w)
	printf(t, "state\tsource\ttarget\tcommit\n")
	for _, p := range found {
		if p.Error != nil {
			printf(t, "failed\t%s\t%s\n", p.Source, strings.TrimPrefix(p.Error.brief, p.Source+": "))
			continue
		}
		printf(t, "%s\t%s\t%s\t%s\n", p.State, p.Source, p.Target, p.remark())
	}
	t.Flush()
}

// remark says which commits of the source are the newest and the converted one, and how the target was verified.
func (p *publication) remark() string {
	text := fmt.Sprintf("%.12s", p.Newest)
	if p.Converted != "" && p.Converted != p.Newest {
		text += fmt.Sprintf(" is the newest, %.12s was converted", p.Converted)
	}
	if p.Weights > 0 {
		text += fmt.Sprintf("; %s verified on the CPU%s by version %s", count(p.Weights, "weight"), either(p.GPU, " and a GPU", ""), p.Tool)
	}
	return text
}
