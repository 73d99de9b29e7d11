package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// openForLayout opens a source that doesn't have the files for a layout, but can be read as if it
// had them: a DF11 model as its original, and a model in diffusers' layout as the one file that
// ComfyUI has of it. It returns nil if spec is neither. refused says that the source was refused as
// a DF11 model.
func (s *session) openForLayout(ctx context.Context, spec string, opt plan.Options,
	onHub, refused bool) (*opened, error) {
	from := opt
	if opt.Layout == catalog.ComfyUI {
		from.Layout = catalog.Diffusers
	}
	o, err := s.openRestored(ctx, spec, from, opt.Layout, refused)
	restored := o != nil || err != nil
	if !restored && opt.Layout == catalog.ComfyUI && opt.WeightFile == "" {
		o, err = s.openSource(ctx, spec, from, onHub)
		if wraps[*plan.RefusedError](err) { // it's in no layout that we know
			return nil, nil
		}
	}
	if o == nil || err != nil || opt.Layout != catalog.ComfyUI {
		return o, err
	}
	class, here := o.model.Class(), o.isHere()
	o, err = s.arrange(ctx, o, spec, opt)
	switch {
	case o != nil && !here:
		return nil, errors.Join(catalog.Refuse(downloadHint(spec, opt.Layout), "%s: %v", spec,
			model.ErrRemoteWeights), o.Close())
	case o != nil || err != nil || !restored:
		return o, err
	}
	return nil, catalog.Refuse(hint.NotArranged,
		"%s: it isn't known how ComfyUI's files arrange the tensors of %s", spec,
		cmp.Or(class, "a model without _class_name"))
}

// isHere reports whether all weights are on this machine.
func (o *opened) isHere() bool {
	for i := range o.model.Listing.Weights {
		if o.source.Local(i) == nil {
			return false
		}
	}
	return true
}

// needsArranging reports whether a file that would become ComfyUI's has a name of diffusers.
func needsArranging(o *opened, opt plan.Options) bool {
	return opt.Layout == catalog.ComfyUI && opt.WeightFile == "" &&
		o.model.Family() == catalog.Diffusers
}

// openArranged opens the original of a DF11 model, also if that is ComfyUI's file and the original
// is in diffusers' layout.
func (s *session) openArranged(ctx context.Context, spec string, opt plan.Options,
	onHub bool) (*opened, error) {
	o, err := s.openSource(ctx, spec, opt, onHub)
	if opt.Layout != catalog.ComfyUI || err != nil && !wraps[*plan.RefusedError](err) ||
		err == nil && o.model.Family() != catalog.Diffusers {
		return o, err
	}
	from := opt
	if from.Layout = catalog.Diffusers; reader.FamilyOf(opt.WeightFile) != catalog.Diffusers {
		from.WeightFile = ""
	}
	other, otherErr := s.openSource(ctx, spec, from, onHub)
	if otherErr == nil {
		other, otherErr = s.arrange(ctx, other, spec, opt)
	}
	if other == nil && (otherErr == nil || wraps[*plan.RefusedError](otherErr)) {
		return o, err
	}
	if o != nil {
		otherErr = errors.Join(otherErr, o.Close())
	}
	return other, otherErr
}

// arrange turns a source in diffusers' layout into one for ComfyUI. It returns nil if it isn't
// known how. On an error it closes the source.
func (s *session) arrange(ctx context.Context, o *opened, spec string,
	opt plan.Options) (*opened, error) {
	folder, err := filepath.Abs(spec)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if !o.model.Local {
		folder = ""
	}
	o.model.Name += "-ComfyUI"
	src, m, ok, err := model.OpenArranged(ctx, o.source, o.model, folder, opt)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", spec, err)
	case ok:
		o.source, o.model = src, m
		return o, nil
	}
	return nil, errors.Join(err, o.Close())
}

// openRestored opens the original of a DF11 model as a source, whose weights are decoded as they're
// read. It returns nil if spec isn't a DF11 model. isDF11 says that it is one. asked is the layout
// that the user asked for, which may be made from that of opt.
func (s *session) openRestored(ctx context.Context, spec string, opt plan.Options,
	asked catalog.Layout, isDF11 bool) (*opened, error) {
	d, err := s.openDF11(ctx, spec)
	switch {
	case errors.Is(err, model.ErrNoDF11Config), !isDF11 && isElsewhere(err):
		return nil, nil //nolint:nilerr // it's refused as a source then
	case model.SubjectOf(err) != "":
		return nil, wrongDF11(err, spec)
	case err != nil:
		return nil, err
	}
	o, err := s.originalOf(ctx, d, opt, asked)
	if err == nil {
		return o, nil
	}
	if model.SubjectOf(err) != "" {
		err = wrongDF11(err, spec)
	}
	if family := catalog.Layout(d.Layout()).Family(); wraps[*plan.RefusedError](err) && family != "" &&
		family != opt.Layout.Family() {
		err = catalog.Refuse(hint.OtherFamily.With("model", spec),
			"%s: it's in the layout of %s, which has other tensors", spec, family)
	}
	return nil, errors.Join(err, d.Close())
}

// isElsewhere reports whether the Hub of results, from which DF11 models are read, doesn't have a
// repo: that of sources may be another Hub.
var isElsewhere = oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrGated, hub.ErrUnauthorized, hub.ErrForbidden)

// originalOf opens the original of d. If the manifest doesn't describe it, or d would have to be
// fetched, the original that d names is opened, too. Hints repeat the layout that the user asked
// for.
func (s *session) originalOf(ctx context.Context, d *model.DF11, opt plan.Options,
	asked catalog.Layout) (*opened, error) {
	pair, o := back.Pair{DF11: d}, &opened{}
	var err error
	if repo, _ := d.Original(); d.Manifest == nil || d.Local() == "" && repo != "" {
		if o, err = s.openOriginal(ctx, d, "", Recipe{}); err != nil {
			if errors.Is(err, errNoOriginal) { // a conversion has no --against
				err = hint.On(err, hint.OldDF11)
			}
			return nil, remoteHint(err, d, asked)
		}
		if o.refused != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", o.model.ID, o.refused), o.Close())
		}
		pair = o.pair(d)
	}
	source, m, prove, err := pair.Original(ctx, opt, s.shares.Tables, s.shares.Workers)
	if err != nil {
		if o.source != nil {
			err = errors.Join(err, o.Close())
		} else {
			err = byManifest(err, d.Name)
		}
		return nil, remoteHint(err, d, asked)
	}
	if err := namesOther(opt, d.Name, &m.Listing); err != nil {
		if o.source != nil {
			err = errors.Join(err, o.Close())
		}
		return nil, err
	}
	if opt.Layout.Single() {
		m.Name += "-single"
	}
	if d.Local() == "" {
		m.DecodedFrom = d
	}
	repo, commit := d.Original()
	named := strings.TrimSuffix(repo+"@"+commit, "@")
	return &opened{source: source, model: m, byManifest: o.source == nil, named: named,
		proof: func(ctx context.Context, made *plan.Plan) error {
			err := prove(ctx, made)
			if o.source == nil {
				err = byManifest(err, d.Name)
			} else if model.SubjectOf(err) != "" {
				err = wrongDF11(err, d.Name)
			}
			return err
		}}, nil
}

// namesOther refuses a component or a file if the weights of a DF11 model were made from another
// one.
func namesOther(opt plan.Options, df11 string, original *plan.Source) error {
	isNamed := func(w plan.WeightFile) bool { return w.Path == opt.WeightFile }
	switch {
	case opt.Component != "" && opt.Component != original.Dir:
		return usage.Errorf("--component %s: %s was made from %s", opt.Component, df11,
			cmp.Or(original.Dir, "a model that isn't a pipeline"))
	case opt.WeightFile != "" && opt.WeightFile != original.WeightFile &&
		!slices.ContainsFunc(original.Weights, isNamed):
		return usage.Errorf("--file %s: %s was made from %s", opt.WeightFile, df11,
			original.Weights[0].Path)
	}
	return nil
}

// byManifest says that an original that can't be read or planned is what the manifest of a DF11
// model describes. A mistake of the user's stays one.
func byManifest(err error, df11 string) error {
	isFault := model.SubjectOf(err) != ""
	if err == nil || errors.Is(err, back.ErrRemoteDF11) || usage.Is(err) ||
		!isFault && !wraps[*plan.RefusedError](err) {
		return err
	}
	if !strings.Contains(err.Error(), names.Manifest) {
		err = fmt.Errorf("the original as %s describes it: %w", names.Manifest, err)
	}
	return wrongDF11(err, df11)
}

// wrongDF11 says how to find out what is wrong with a DF11 model.
func wrongDF11(err error, df11 string) error {
	return hint.On(err, hint.WrongDF11.With("model", df11))
}

// remoteHint says how to go on without the original, if the DF11 model alone is enough for that.
func remoteHint(err error, d *model.DF11, layout catalog.Layout) error {
	if d.Local() != "" || d.Manifest == nil {
		return err
	}
	return hint.On(err, downloadHint(d.Name, layout))
}

// downloadHint says how to convert a folder instead of a repo.
func downloadHint(repo string, layout catalog.Layout) hint.Hint {
	return hint.Download.With("repo", repo, "layout", layout.Name())
}
