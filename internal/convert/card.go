package convert

import (
	"context"
	"path"
	"path/filepath"
	"regexp"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/python"
)

// card writes the model card.
func (r *result) card() ([]byte, error) {
	m := r.Model
	in := metadata.CardInput{
		Name: m.Name + names.ResultEnd, Repo: r.at.Repo, Branch: r.at.Branch,
		Plan: r.Plan, Component: component(m), Pipeline: pipelineOf(m),
		CardSource: metadata.CardSource{
			Gated: m.Gated != "", Source: r.front,
			PipelineTag: m.PipelineTag, Licensed: r.License != "", Replaced: r.replaced,
		},
		CardSizes: metadata.CardSizes{SourceBytes: r.sizes.BF16,
			F32Bytes: r.sizes.F32, OutputBytes: r.sizes.DF11},
		Manifest: r.manifest, Config: m.Listing.Config,
	}
	if o := m.Origin; o != nil {
		in.Elsewhere = !names.IsPublicHub(o.Endpoint)
		in.Revision, in.OffMain, in.OtherLicense = o.Revision, o.OffMain, o.OtherLicense
		in.BaseModel, in.Commit, in.Equal, in.File, in.Unlike = o.Repo, o.Commit, o.Equal, o.File, o.Unlike
	}
	if in.Repo != "" {
		in.Name = path.Base(in.Repo)
	}
	if r.Plan.HasChart() {
		in.Image = names.Chart
	}
	return metadata.Card(in)
}

// component returns the folder of the converted component of a diffusers pipeline, or "" if the
// source is no pipeline.
func component(m *model.Model) string {
	if dir := path.Dir(m.Listing.Weights[0].Path); dir != "." && m.Listing.ModelIndex != nil {
		return dir
	}
	return ""
}

// pipelineClass matches the names of diffusers' own classes.
var pipelineClass = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// pipelineOf returns the pipeline's class as model_index.json states it, or "" if it states none.
func pipelineOf(m *model.Model) string {
	var index struct {
		Class any `json:"_class_name"` // a list, if the class comes with the model
	}
	if python.Unmarshal(m.Listing.ModelIndex, &index) != nil {
		return ""
	}
	name, _ := index.Class.(string)
	return pipelineClass.FindString(name)
}

// maxNames bounds the base models, and the data sets, that the Hub is asked for: the largest merges
// have about 20 base models.
const maxNames = 50

// checkNames leaves out of the card what the source's card calls a model or a data set, but may be
// a path: the Hub has none of that name, or, if it isn't asked, something lies there on this disk.
// If strangers may see the card, what is private stays unnamed, too. Only a local source has such
// names: a Hub's card is that of a repo.
func (j *job) checkNames(ctx context.Context) {
	if !j.Model.Local {
		return
	}
	j.noteCard(j.front.Limit(maxNames)...)
	if j.Push != nil {
		j.noteCard(j.front.Drop("isn't on the Hub, or is private", func(rule, v string) bool {
			return j.Push.Hides(ctx, j.Model, v, rule == "datasets")
		})...)
		return
	}
	j.noteCard(j.front.Drop("is a path on this disk", func(_, v string) bool {
		return model.Exists(v) || model.Exists(filepath.Join(j.Model.Folder, v))
	})...)
}

// checkCard makes the card and config.json before any work, as far as they don't depend on it, and
// asks the Hub to check the card. Otherwise a fault in them would end the run at its end.
func (j *job) checkCard(ctx context.Context) error {
	if _, err := j.config(); err != nil {
		return err
	}
	r := result{job: j, at: j.where(), manifest: &metadata.Manifest{}}
	card, err := r.card()
	if err != nil || j.Push == nil {
		return err
	}
	return j.Push.CheckCard(ctx, card)
}
