package pipeline

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
)

// An Audience says who can see the repo that Convert with Push would publish to, before it does.
type Audience struct {
	Repo string `json:"repo"`
	// Hidden says that strangers don't see the repo: it's there and private, it's to be private, or the
	// Hub doesn't show it to the token and so may hold it.
	Hidden bool `json:"hidden"`
}

// AudienceOf returns the audience of a source's target. It changes nothing. A target that isn't
// there yet counts as visible, unless the options ask for a private one; whether its source is
// visible is another question.
func AudienceOf(ctx context.Context, source string, opt Options) (*Audience, error) {
	opt.Push = true
	a, err := audienceOf(ctx, source, opt)
	if err := opt.ended(ctx, err); err != nil {
		return nil, err
	}
	return a, nil
}

func audienceOf(ctx context.Context, source string, opt Options) (*Audience, error) {
	if err := opt.checkTarget(); err != nil {
		return nil, err
	}
	s, err := opt.begin(budget.ForReading)
	if err != nil {
		return nil, err
	}
	defer s.close()
	name := ""
	if opt.Repo == "" {
		if name, err = s.nameOf(ctx, source, &opt); err != nil {
			return nil, err
		}
	}
	push, err := s.push(ctx, &opt, name)
	if err != nil {
		return nil, err
	}
	a := &Audience{push.Repo, opt.Visibility == Private}
	info, err := push.Hub.Describe(ctx, push.Repo, "")
	switch {
	case errors.Is(err, hub.ErrRevisionNotFound): // it's there, and says no more
		a.Hidden = true
	case errors.Is(err, hub.ErrNotFound):
		a.Hidden = a.Hidden || push.Hub.NeedToken() != nil
	case err != nil:
		return nil, err
	case !info.Open && (info.Private || info.Gated == ""):
		a.Hidden = true
	}
	return a, nil
}

// nameOf returns the name that a conversion would take from its source.
func (s *session) nameOf(ctx context.Context, source string, opt *Options) (string, error) {
	if opt.OnHub || !model.Exists(source) {
		c, repo, revision, err := s.repo("source", source)
		if err != nil {
			return "", err
		}
		info, err := c.Describe(ctx, repo, revision)
		if err != nil {
			return "", err
		}
		return model.NameOf(repo, info), nil
	}
	src, err := s.open(ctx, source, opt.Recipe, opt.OnHub)
	if err != nil {
		return "", err
	}
	defer src.Close()
	return src.model.Name, nil
}
