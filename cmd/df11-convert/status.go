package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/target"
)

// stateLocal is the state of a source that is no repo, so that nothing tells whether it is still
// the same.
const stateLocal target.State = "local"

// publication is what the two repos say of one model, without reading a weight.
type publication struct {
	Source    string       `json:"source"`
	Target    string       `json:"target,omitempty"`
	State     target.State `json:"state,omitempty"`
	Todo      bool         `json:"todo"`                       // batch would convert it
	Newest    string       `json:"newest_commit,omitempty"`    // of the source
	Converted string       `json:"converted_commit,omitempty"` // that the target was made of
	Tool      string       `json:"tool_version,omitempty"`     // that made it
	// when it was made, says the manifest
	Weights int64    `json:"weights_verified,omitempty"`
	GPU     bool     `json:"gpu,omitempty"` // which decoded them as well
	Error   *failure `json:"error,omitempty"`
}

func statusCommand(u *ui) *cobra.Command {
	f := convertFlags{target: targetFlags{push: true}} // which a list completes
	c := &cobra.Command{
		Use:   "status LIST",
		Short: "Compare a list of models with what is published of them",
		Long: `status reads the list that batch takes, plans each model, and tells whether what is published is what a conversion would
publish now, of which commit it was made, and how it was verified then, as its manifest says. It changes nothing. The exit
code is 0 if all models are current, or kept as they are by refresh: never, else 1.`,
		Example: `  df11-convert status models.yaml
  df11-convert status models.yaml --json`,
		Args: exactArgs(1, "LIST"),
		RunE: func(c *cobra.Command, args []string) error {
			return runStatus(c.Context(), u, &f, args[0])
		},
	}
	f.sourceFlags.register(c.Flags(), false)
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
		p, err := flags.status(ctx, u, m.spec())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.Error = failureOf(err)
		}
		if p.Todo = !m.keeps(p) && p.State != stateLocal; p.Todo {
			todo++
		}
		found = append(found, p)
	}
	u.result(map[string]any{"models": found}, "", func(w io.Writer) { printStatus(w, found) })
	if todo > 0 {
		return fmt.Errorf("%d of %d %w", todo, len(found), errNotCurrent)
	}
	return nil
}

var errNotCurrent = errors.New("models are not published as they are now")

// status tells what is published of a source.
func (f *convertFlags) status(ctx context.Context, u *ui, spec string) (publication, error) {
	if model.Exists(spec) {
		return publication{Source: spec, State: stateLocal}, nil
	}
	if err := f.settle(); err != nil {
		return publication{Source: spec}, err
	}
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return publication{Source: spec}, err
	}
	defer src.Close()
	push, err := f.push(ctx, u, src)
	if err != nil {
		return publication{Source: spec, Newest: src.model.Commit}, err
	}
	return publicationOf(ctx, spec, src, push)
}

// publicationOf tells what a repo holds of the conversion of a source.
func publicationOf(ctx context.Context, spec string, src *opened,
	push *target.Push) (publication, error) {
	p := publication{Source: spec, Target: push.Repo, Newest: src.model.Commit}
	state, m, err := push.State(ctx, target.NewOwner(src.plan, src.model.ID, "", false, nil))
	if p.State = state; m == nil {
		return p, err
	}
	p.Converted, p.Tool = m.Source.Commit, m.Tool.Version
	for _, v := range m.Verification {
		p.Weights = max(p.Weights, v.NWeights)
		p.GPU = p.GPU || v.Device != ""
	}
	return p, nil
}

// keeps reports whether a batch leaves what is published of a model as it is.
func (m listedModel) keeps(p publication) bool {
	return p.State == target.Current || m.Refresh == refreshNever && p.State == target.Outdated
}

func printStatus(w io.Writer, found []publication) {
	t := newTable(w)
	printf(t, "state\tsource\ttarget\tcommit\tverified\n")
	for _, p := range found {
		if p.Error != nil {
			p.State = "failed"
		}
		commit := fmt.Sprintf("%.12s", p.Converted)
		printf(t, "%s\t%s\t%s\t%s\t%s\n", p.State, p.Source, cmp.Or(p.Target, none),
			cmp.Or(commit, none), cmp.Or(p.remark(), none))
	}
	t.Flush()
}

// none stands in a table for what there is not.
const none = "—"

// remark says what is wrong, whether the source has changed since, and how the target was verified.
func (p *publication) remark() string {
	if p.Error != nil {
		return strings.TrimPrefix(p.Error.brief, p.Source+": ")
	}
	var parts []string
	if p.Weights > 0 {
		parts = append(parts, count(p.Weights, "weight")+choose(p.GPU, ", on a GPU too", ""))
	}
	switch {
	case p.Converted != "" && p.Converted != p.Newest:
		parts = append(parts, fmt.Sprintf("%.12s is the newest", p.Newest))
	case p.State == target.Outdated:
		parts = append(parts, "was converted with other flags")
	}
	return strings.Join(parts, "; ")
}
