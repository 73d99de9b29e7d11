package pipeline

import (
	"context"
	"fmt"
	"path"
	"regexp"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/pyjson"
)

// card writes the model card.
func (c *conversion) card(m *metadata.Manifest, p *Report) ([]byte, error) {
	in := metadata.CardInput{
		Name: c.cardTitle(), Plan: c.Plan, Component: component(c.Model), Pipeline: c.pipeline(),
		CardSource: metadata.CardSource{
			BaseModel: c.baseModel(), Commit: c.baseCommit(),
			SaidToBe: c.Model.Local && c.baseModel() != "", SourceName: c.Model.Name,
			Gated: c.Model.Gated != "", Source: c.Model.Card,
			PipelineTag: c.Model.PipelineTag, LibraryName: c.Model.LibraryName,
		},
		CardSizes: metadata.CardSizes{SourceBytes: p.BF16Bytes, F32Bytes: p.F32Bytes,
			OutputBytes: p.DF11Bytes},
		Manifest: m,
	}
	if c.Push != nil {
		in.Repo = c.Push.Repo
	}
	if c.hasChart() {
		in.Image = names.Chart
	}
	return metadata.Card(in)
}

// cardTitle is the result's name: its repo's, or one after the source.
func (c *conversion) cardTitle() string {
	if c.Push != nil {
		return path.Base(c.Push.Repo)
	}
	return c.Model.Name + "-DF11"
}

// component is the folder of the converted part of a diffusers pipeline; "" if the source is none.
func component(m *model.Model) string {
	if dir := path.Dir(m.Listing.Weights[0].Path); dir != "." && m.Listing.ModelIndex != nil {
		return dir
	}
	return ""
}

// pipelineClass matches the name of a class of diffusers' own.
var pipelineClass = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// pipeline is the class of the pipeline that the source is, as its model_index.json states it; ""
// if it states none.
func (c *conversion) pipeline() string {
	var index struct {
		Class any `json:"_class_name"` // a list for a class that comes with the model
	}
	if pyjson.Unmarshal(c.Model.Listing.ModelIndex, &index) != nil {
		return ""
	}
	name, _ := index.Class.(string)
	return pipelineClass.FindString(name)
}

// checkCard makes card and config.json before any work, as far as they do not depend on it, and
// asks the Hub about the front matter: what they can't be made of would fail at the end.
func (c *conversion) checkCard(ctx context.Context) error {
	config, err := metadata.Config(c.Plan, c.Model.Listing.Config)
	if err == nil {
		err = forward.CheckConfig(config, c.Plan)
	}
	if err != nil {
		return err
	}
	card, err := c.card(&metadata.Manifest{}, &Report{})
	if err != nil || c.Push == nil {
		return err
	}
	warnings, err := c.Push.Hub.ValidateCard(ctx, card)
	if err != nil {
		return fmt.Errorf("model card: %w", err)
	}
	for _, w := range warnings {
		c.Log.Warn("model card", "why", w)
	}
	return nil
}
