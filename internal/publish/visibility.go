package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
)

// A Visibility says who may see a target, and why. The zero value is private.
type Visibility struct {
	Open  bool // everyone may
	Asked bool // a flag says so
	Why   string
	// Stays says that the target is there already, and private: a run doesn't open it.
	Stays bool
}

func (v Visibility) String() string {
	switch {
	case v.Open && v.Stays:
		return "is there already and stays private, until you change that in its settings; it may be public: " +
			v.Why
	case v.Open:
		return "may be public: " + v.Why
	case v.Stays:
		return "is private already, as it should be: " + v.Why
	case v.Asked:
		return "is to be private: " + v.Why
	}
	return "is to be private: " + v.Why + "; --public publishes it for everyone, if the license allows that"
}

// Visibility says who may see the target, by what the source's Hub said when the source was opened.
// A flag decides. Without one, the target is as open as its Hub says that the repo with the
// source's weights is. The target of a source without such a repo is private. Nothing else that's
// found on a disk or in a card counts.
func (p *Push) Visibility(ctx context.Context, m *model.Model) Visibility {
	return p.visibility(ctx, m, m.Closed())
}

// VisibilityNow is Visibility by what the source's Hub says now. The error says that it doesn't
// answer.
func (p *Push) VisibilityNow(ctx context.Context, m *model.Model) (Visibility, error) {
	if p.Private != nil {
		return p.Visibility(ctx, m), nil
	}
	why, err := m.ClosedNow(ctx)
	if err != nil {
		return Visibility{}, err
	}
	return p.visibility(ctx, m, why), nil
}

// visibility is Visibility for a source that is closed for a reason, or open with "".
func (p *Push) visibility(ctx context.Context, m *model.Model, why string) Visibility {
	switch {
	case p.Private != nil && *p.Private:
		return Visibility{Asked: true, Why: "--private asks for that"}
	case p.Private != nil:
		return Visibility{Open: true, Asked: true, Why: "--public allows that"}
	case why == "" && m.Origin.Endpoint != p.Hub.Endpoint():
		why = p.closedHere(ctx, m)
	}
	if why != "" {
		return Visibility{Why: why}
	}
	why = m.Origin.Repo + " is public"
	if n := m.Origin.Equal; n > 0 {
		why = fmt.Sprintf("every weight file (%d) has the SHA-256 of %s's, which is public", n, m.Origin.Repo)
	}
	return Visibility{Open: true, Why: why}
}

// closedHere says why the repo of another Hub isn't public at the target's Hub, or returns "". A
// repo that everyone may see on that Hub may be open only to a company, or be another model.
func (p *Push) closedHere(ctx context.Context, m *model.Model) string {
	repo := m.Origin.Repo
	info, err := p.Hub.Info(ctx, repo, m.Origin.Commit)
	if err != nil {
		return fmt.Sprintf("%s doesn't say that everyone may read %s", p.Hub.Endpoint(), repo)
	}
	if !info.Open {
		return fmt.Sprintf("%s isn't public at %s", repo, p.Hub.Endpoint())
	}
	return m.Differs(info)
}

// A VisibilityError says that strangers can open an existing target that may not be public.
type VisibilityError struct {
	Target string
	Closed string // why it may not; "" if --private asks for a private one
	// Changed says that this came about while the run worked. Shown lists the files of the result that
	// strangers can open since.
	Changed bool
	Shown   []string
}

func (e *VisibilityError) Error() string {
	switch {
	case e.Changed:
		s := fmt.Sprintf("everyone can open %s now, but the result may not be public: %s; this run "+
			"commits nothing more", e.Target, cmp.Or(e.Closed, "--private asks for a private target"))
		if len(e.Shown) > 0 {
			s += "; public there already: " + human.List(e.Shown)
		}
		return s
	case e.Closed == "":
		return "everyone can open " + e.Target + ", but the target is to be private"
	}
	return fmt.Sprintf("everyone can open %s, but the result may not be public: %s", e.Target, e.Closed)
}

// Hint says how to hide what is public already, or how to get a private target, if --private asks
// for one.
func (e *VisibilityError) Hint() hint.Hint {
	switch {
	case len(e.Shown) > 0:
		return hint.Shown.With("repo", e.Target)
	case e.Closed == "":
		return hint.NotPrivate
	}
	return hint.Visibility
}

// gatedManual is the mode of a public repo whose owner approves each reader. With "auto", anyone who
// asks may read.
const gatedManual = "manual"

// refuse refuses a target that strangers can open, unless it may be public.
func (v Visibility) refuse(target *hub.RepoInfo) error {
	switch {
	case v.Open || target.Private:
		return nil
	case v.Asked:
		return &VisibilityError{Target: target.ID}
	case target.Gated == gatedManual:
		return nil
	}
	return &VisibilityError{Target: target.ID, Closed: v.Why}
}

// admit asks again whether a commit may be made, right before it: if the result may be public, the
// source's Hub must still say so, and else the target must still be closed to strangers. A flag
// that allows a public target stays as it is.
func (r *repo) admit(ctx context.Context) (err error) {
	v := r.visibility
	if v.Open && v.Asked {
		return nil
	}
	if v.Open {
		if v, err = r.push.VisibilityNow(ctx, r.source); err != nil || v.Open {
			return err
		}
	}
	target, err := r.push.Hub.Describe(ctx, r.push.Repo, "")
	if err != nil {
		return err
	}
	refused, ok := errors.AsType[*VisibilityError](v.refuse(target))
	if !ok {
		return nil
	}
	refused.Changed, refused.Shown = true, r.shown()
	return refused
}

// shown lists the files of the result that are in the target, as far as this run knows.
func (r *repo) shown() (paths []string) {
	for _, b := range []*branch{r.main, r.work} {
		for _, f := range b.in.Ours() {
			paths = append(paths, f.Path)
		}
		paths = append(paths, b.added...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
