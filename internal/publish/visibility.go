package publish

import (
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/hub"
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
	case v.Asked:
		return "is to be private: " + v.Why
	}
	return "is to be private: " + v.Why + "; --public publishes it for everyone, if the license allows that"
}

// Visibility says who may see the target. A flag decides. Without one, the target is as open as its
// Hub says that the repo with the source's weights is. The target of a source without such a repo
// is private. Nothing else that's found on a disk or in a card counts.
func (p *Push) Visibility(ctx context.Context, m *model.Model) Visibility {
	why := m.Closed()
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
}

func (e *VisibilityError) Error() string {
	if e.Closed == "" {
		return e.Target + " is there already, and is not private"
	}
	return fmt.Sprintf("everyone can open %s, but the result may not be public: %s", e.Target, e.Closed)
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
	return &VisibilityError{target.ID, v.Why}
}
