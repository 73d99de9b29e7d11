package target

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// State tells what a repo holds of a conversion.
type State string

const (
	// Current is all that a run would publish.
	Current State = "current"
	// Outdated is a finished conversion of another commit, or with other flags.
	Outdated State = "outdated"
	// Unfinished is a conversion that has begun, or has lost files.
	Unfinished State = "unfinished"
	// Missing is no repo, or nothing in it.
	Missing State = "missing"
	// Foreign is a model that this program did not make.
	Foreign State = "foreign"
)

// State compares a repo with the plan of a conversion, and changes nothing: it reads the list of files and the manifest, which
// is nil if there is none.
func (p Push) State(ctx context.Context, digest string) (State, *metadata.Manifest, error) {
	head, err := p.Hub.Head(ctx, p.Repo, cmp.Or(p.Revision, "main"))
	if errors.Is(err, hub.ErrNotFound) || errors.Is(err, hub.ErrRevisionNotFound) {
		return Missing, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	t, err := p.readTree(ctx, head)
	if err != nil {
		return "", nil, err
	}
	m, err := readManifest(ctx, t.snapshot())
	if err != nil {
		return "", nil, err
	}
	if m == nil {
		return t.withoutManifest(), nil, nil
	}
	l := ledger.OfManifest(m, digest, "", false)
	switch {
	case l == nil:
		return Outdated, m, nil
	case slices.ContainsFunc(l.Outputs(), func(o ledger.Output) bool { return !holds(t.files, o) }):
		return Unfinished, m, nil
	}
	return Current, m, nil
}

// withoutManifest is the state of a repo that has none.
func (t *tree) withoutManifest() State {
	state := Missing
	for name := range maps.Keys(t.files) {
		switch {
		case IsJournal(name):
			return Unfinished
		case strings.HasPrefix(name, "config.json"), strings.HasPrefix(name, "model"):
			state = Foreign
		}
	}
	return state
}
