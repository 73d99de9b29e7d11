package pipeline

import (
	"context"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// foreignCode says how a card differs from ours. People copy code from a card and run it.
const foreignCode = "its code isn't ours"

// named matches the card's verify command, which names the model and its original.
var named = regexp.MustCompile(
	`(?m)^(?:uvx )?df11-convert verify (.+?) --against (\S+?)(?:@(\w+))?(?: --like \S+)?$`)

// judgeCard adds the card to the files that differ, unless its code is byte for byte what a
// conversion of this original writes.
func (v *verification) judgeCard(ctx context.Context) {
	code := v.DF11.CardCode
	if code == "" {
		return
	}
	if runtime.GOOS == "js" { // templates would add a quarter to what a page downloads
		v.check.Warn("this page doesn't compare the card's code with ours: before you run that code, " +
			"run verify on your machine")
		return
	}
	if in := v.cardInput(code); in != nil {
		for _, in.Plan = range v.cardPlans(ctx) {
			card, err := metadata.Card(*in)
			if err == nil && metadata.Code(card) == code {
				return
			}
		}
	}
	v.check.Beside = append(v.check.Beside, back.OtherFile{Path: names.Card, How: foreignCode})
}

// cardInput returns everything that the card's code depends on except the plan. It returns nil if
// the code names another model or another original. A folder may be a copy of any repo, and a local
// original may come from any base model, so their names aren't compared.
func (v *verification) cardInput(code string) *metadata.CardInput {
	d, m, said := v.DF11, v.Model, named.FindStringSubmatch(code)
	if said == nil {
		return nil
	}
	in := &metadata.CardInput{Name: said[1], Component: component(m), Pipeline: pipelineOf(m)}
	switch {
	case names.CheckNewRepo(said[1]) == nil:
		in.Name, in.Repo = path.Base(said[1]), said[1]
	case strings.ContainsAny(said[1], `'"`): // quoted for a shell
		in.Name = m.Name + "-DF11"
	}
	if said[2] != "SOURCE" {
		in.BaseModel, in.Commit = said[2], said[3]
	}
	commits := []string{"", m.Commit}
	if d.Manifest != nil {
		commits = append(commits, d.Manifest.Source.Commit)
	}
	otherModel := in.Repo != "" && d.Local() == "" && in.Repo != d.Name
	otherBase := in.BaseModel != "" && !m.Local && in.BaseModel != m.ID
	if otherModel || otherBase || !m.Local && !slices.Contains(commits, in.Commit) ||
		strings.ContainsAny(in.Name, `/\`) {
		return nil
	}
	if m.Local && strings.Contains(code, `"`+in.BaseModel+`"`) {
		v.check.Warn("the card's code loads the other components of %s, which nothing was "+
			"compared with", in.BaseModel)
	}
	in.Manifest = new(metadata.Manifest)
	if strings.HasPrefix(said[0], "uvx ") { // as releases write
		in.Manifest.Tool.Version = "1.0.0"
	}
	for _, u := range v.Plan.Units {
		if d.Coded(u.Path) {
			in.Manifest.Units = append(in.Manifest.Units,
				metadata.Unit{Path: u.Path, Status: metadata.DF11})
		}
	}
	return in
}

// cardPlans returns the plans that a conversion may have made the model with: the plan of the given
// dict, and that of the entry that the manifest names, or else the catalog's.
func (v *verification) cardPlans(ctx context.Context) []*plan.Plan {
	opt := plan.Options{Layout: v.Plan.Layout, Component: component(v.Model), ExactF32: true}
	if v.DF11.Manifest != nil {
		opt.Like = v.DF11.Manifest.Plan.Entry
	}
	plans := []*plan.Plan{v.Plan}
	p, err := plan.New(ctx, v.Model.Listing, opt)
	if err == nil && (v.DF11.Dict == nil || p.PatternDict.Equal(v.DF11.Dict)) {
		plans = append(plans, p)
	}
	return plans
}
