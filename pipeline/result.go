package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/target"
)

// A result is what a finished conversion writes beside the weights, and what it says about them.
type result struct {
	*job
	report   *Report
	manifest *metadata.Manifest
}

// files lists everything beside the weights, in the order in which it appears: config.json last,
// and the manifest, which lists the others, before it.
func (r *result) files(copied []target.SideFile) ([]target.SideFile, error) {
	files := slices.Clone(copied)
	if index := metadata.RemainderIndex(r.Plan); index != nil {
		files = append(files, target.NewSideFile(r.Plan.RemainderIndex, metadata.KindIndex, index))
	}
	card, err := r.card()
	if err != nil {
		return nil, err
	}
	files = append(files, target.NewSideFile(names.Card, metadata.KindCard, card))
	if r.hasChart() {
		chart, err := r.chart()
		if err != nil {
			return nil, err
		}
		files = append(files, target.NewSideFile(names.Chart, metadata.KindImage, chart))
	}
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	if config != nil {
		files = append(files, target.NewSideFile(r.Plan.ConfigPath(), metadata.KindConfig, config))
	}
	for _, f := range files {
		r.manifest.Outputs = append(r.manifest.Outputs, f.OutputFile)
	}
	b, err := r.manifest.Marshal()
	if err != nil {
		return nil, err
	}
	manifest := target.NewSideFile(names.Manifest, "", b)
	r.report.Target.ManifestSHA256 = manifest.SHA256
	return slices.Insert(files, len(files)-min(1, len(config)), manifest), nil
}

// whole is the result for a target: the files beside the weights, and the outputs.
func (r *result) whole(files []target.SideFile, outputs []ledger.Output) *target.Result {
	m := r.Model
	return &target.Result{
		Files: files, Outputs: outputs,
		Summary: fmt.Sprintf("Add %s as DF11", m.ID),
		Description: fmt.Sprintf(
			"Made by df11-convert %s from %s at %s; every weight was decoded again and compared.",
			r.Version, m.ID, cmp.Or(m.Commit, "an unpinned revision")),
	}
}
