package publish

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A State says what a repo holds of a conversion.
type State string

const (
	// Current is all that a run would publish.
	Current State = "current"
	// Outdated is a finished conversion of another commit, with other flags, or by other rules.
	Outdated State = "outdated"
	// Unfinished is a conversion that has begun, or whose files were removed or changed.
	Unfinished State = "unfinished"
	// Missing is no repo, or nothing in it.
	Missing State = "missing"
	// Foreign is a model that this program did not make.
	Foreign State = "foreign"
)

// State returns what a repo holds of a conversion, and changes nothing. The inspection is nil if
// there is no repo, or none to compare with. State returns the error with which a run would refuse
// the repo.
func (p Push) State(ctx context.Context, run *Conversion,
	m *model.Model) (State, *Inspection, error) {
	if p.isSource(p.Repo, m) {
		return "", nil, &SourceTargetError{Target: p.Repo, Flag: "--repo-id"}
	}
	info, in, err := p.inspect(ctx, run, place{}, cmp.Or(p.Revision, "main"), nil)
	switch {
	case errors.Is(err, hub.ErrNotFound):
		return Missing, nil, nil
	case errors.Is(err, hub.ErrRevisionNotFound):
		return Missing, &Inspection{}, nil
	case in != nil && in.state(run.From.Commit) == Foreign:
		return Foreign, nil, nil
	case err == nil:
		err = p.Visibility(ctx, m).refuse(info)
	}
	if err != nil {
		return "", nil, err
	}
	in.Published = info.LastModified
	return in.state(run.From.Commit), in, nil
}

// state is the state of a repo, for a commit of the source.
func (in *Inspection) state(commit string) State {
	switch {
	case in.Current:
		return Current
	case in.isOf(commit) && in.Manifest.Plan.Rules >= plan.Rules:
		return Unfinished
	case in.Manifest != nil:
		return Outdated
	}
	state := Missing
	for name := range in.versions {
		switch {
		case names.IsJournal(name):
			return Unfinished
		case strings.HasPrefix(name, names.Config), strings.HasPrefix(name, "model"):
			state = Foreign
		}
	}
	return state
}
