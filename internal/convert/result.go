package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// A result is what a finished conversion writes next to the weights, and what that says about them.
type result struct {
	*job
	at       publish.Location // where it's published
	sizes    Sizes
	manifest *metadata.Manifest // without the files next to the weights
}

// files returns everything next to the weights except the manifest, in the order in which the files
// appear: config.json comes last.
func (r *result) files(copied []publish.SideFile) ([]publish.SideFile, error) {
	files := slices.Clone(copied)
	for _, path := range r.Plan.SideFiles() {
		var kind metadata.Kind
		var data []byte
		var err error
		switch path {
		case r.Plan.RemainderIndex:
			kind, data = metadata.KindIndex, metadata.RemainderIndex(r.Plan)
		case names.Card:
			kind = metadata.KindCard
			data, err = r.markedCard()
		case names.Chart:
			kind = metadata.KindImage
			data, err = r.chart()
		case r.Plan.ConfigPath():
			kind = metadata.KindConfig
			data, err = r.config()
		case names.Manifest: // each target has its own, which lists the others
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, publish.NewSideFile(path, kind, data))
	}
	return files, nil
}

// markedCard returns the card with marks around it, so that you can add to it.
func (r *result) markedCard() ([]byte, error) {
	card, err := r.card()
	if err != nil {
		return nil, err
	}
	return metadata.MarkCard(card), nil
}

// withCard returns files with what others have added to the card of a destination. If the run was
// given a license, it replaces the card's, even if someone else wrote that.
func (r *result) withCard(ctx context.Context, files []publish.SideFile,
	found *publish.Inspection) ([]publish.SideFile, error) {
	card, err := found.Card(ctx)
	if card == nil || err != nil {
		return files, err
	}
	var always []string
	if r.License != "" {
		always = metadata.LicenseMembers
	}
	files = slices.Clone(files)
	for i, f := range files {
		if f.Kind != metadata.KindCard {
			continue
		}
		if both := metadata.UpdateCard(card, f.Data, always...); both != nil {
			files[i] = publish.NewSideFile(f.Path, f.Kind, both)
			r.compareLicenses(found.Where, both, f.Data)
		}
	}
	return files, nil
}

// compareLicenses warns of a license that someone else has written in a card, if ours is another.
func (r *result) compareLicenses(where string, card, ours []byte) {
	kept, err := metadata.ParseFrontMatter(card)
	if own, ownErr := metadata.ParseFrontMatter(ours); errors.Join(err, ownErr) == nil &&
		!slices.Equal(kept.License, own.License) {
		r.Log.Warn(fmt.Sprintf("the card of %s keeps the license that someone else wrote there, %q; "+
			"the source's is %q", where, strings.Join(kept.License, ", "),
			strings.Join(own.License, ", ")))
	}
}

// whole returns the result for one target: the outputs, and the files next to the weights with the
// manifest before config.json. The manifest says which files the target had already.
func (r *result) whole(ctx context.Context, files []publish.SideFile, outputs []ledger.Output,
	found *publish.Inspection) (*publish.Result, error) {
	of, last := *r.manifest, len(files)
	files, err := r.withCard(ctx, files, found)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		f.Kept = found.Files[f.Path].Standing == publish.Equal
		if of.Outputs = append(slices.Clip(of.Outputs), f.OutputFile); f.Kind == metadata.KindConfig {
			last = i
		}
	}
	b, err := of.Marshal()
	if err != nil {
		return nil, err
	}
	manifest := publish.NewSideFile(names.Manifest, "", b)
	from := "a local model" // whose name is private
	if repo, commit := r.original(); repo != "" {
		from = repo + "@" + commit
	}
	return &publish.Result{
		Files: slices.Insert(slices.Clone(files), last, manifest), Outputs: outputs,
		Summary:     fmt.Sprintf("Add %s as DF11", strings.Split(from, "@")[0]),
		Description: fmt.Sprintf("Made by df11-convert %s from %s.", r.Version, from),
		Sending:     r.Progress.Uploading,
	}, nil
}
