package convert

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A job is what was asked for, and what the card takes of the source's. It knows nothing of what
// its targets hold. Opening them changes it: if that needed the hashes of a local source, Model has
// them then, and front has no names that the card may not have.
type job struct {
	Options
	outputs []*spans.Output // all of the plan
	front   metadata.FrontMatter
	// replaced is the license that the source's card names, if the user named another
	replaced string
	notes    []string // warnings about the result's card
}

func newJob(opt Options) (*job, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	outputs, err := spans.Outputs(opt.Plan)
	if err != nil {
		return nil, err
	}
	j := &job{Options: opt, outputs: outputs}
	return j, j.readFront()
}

// A CardError means that the source's card can't be read, so that nothing is known about its
// license.
type CardError struct{ error }

func (e *CardError) Unwrap() error { return e.error }

// CheckSource returns an error if a result with this license, "" for the card's own, can't be
// published: a RefusedError about a file that the source keeps back, or a CardError.
func CheckSource(m *model.Model, p *plan.Plan, license string) error {
	if err := p.CheckKept(); err != nil {
		return err
	}
	if _, err := m.Card(); err != nil && license == "" {
		return &CardError{fmt.Errorf("README.md: %w", err)}
	}
	return nil
}

// readFront reads the members of the source's front matter that the result's card may have. Without
// a license, nothing of an unreadable card is published.
func (j *job) readFront() (err error) {
	j.front, err = j.Model.Card()
	if j.License != "" {
		j.replaced = j.front.LicenseText()
		j.front.SetLicense(j.License)
	}
	if j.Push != nil {
		if err := CheckSource(j.Model, j.Plan, j.License); err != nil {
			return err
		}
	}
	if err != nil {
		j.notes = append(j.notes, "the card has nothing of the source's README.md: "+err.Error())
	}
	j.noteCard(j.front.Clean()...)
	if j.Push != nil {
		j.noteCard(j.Model.CardLeftOut()...)
	}
	return nil
}

// noteCard notes what was done to the source's card.
func (j *job) noteCard(did ...string) {
	for _, text := range did {
		j.notes = append(j.notes, "README.md: "+text)
	}
}

// original returns the Hub repo that has the same weights, and its commit; "" if they weren't
// compared.
func (j *job) original() (repo, commit string) {
	if o := j.Model.Origin; o != nil {
		return o.Repo, o.Commit
	}
	return "", ""
}

// where returns where the result is to be published.
func (j *job) where() publish.Location {
	if j.Push == nil {
		return publish.Location{}
	}
	return j.Push.Where()
}

// target names the repo that the result goes to, or else the folder.
func (j *job) target() string { return cmp.Or(j.where().Repo, j.OutDir) }

// carried lists the files that the result takes unchanged from the source.
func (j *job) carried() []plan.File {
	return slices.DeleteFunc(j.Plan.AllCopied(), func(f plan.File) bool {
		return f.Path == j.Plan.Config
	})
}

// sourceSum returns the SHA-256 of a copied file of a local source, and "" for one of a repo.
func (j *job) sourceSum(ctx context.Context, f plan.File) (string, error) {
	if !j.Model.Local {
		return "", nil
	}
	h, err := j.Model.Hashes(ctx, j.Source, f)
	return h.SHA256, err
}

// config returns the result's config.json, or nil if it has none. It checks that a loader can use
// it, and that it's made of what was compared.
func (j *job) config() ([]byte, error) {
	if err := j.Model.CheckDescription(); err != nil {
		return nil, err
	}
	config, err := metadata.Config(j.Plan, j.Plan.Version(), j.Model.Listing.Config)
	if err != nil {
		return nil, err
	}
	return config, forward.CheckConfig(config, j.Plan)
}
