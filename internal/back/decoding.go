package back

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A ManifestError says that the manifest describes other files than the original's. Without the
// original, decoding goes by the manifest.
type ManifestError struct{ Detail string }

func (e *ManifestError) Error() string { return names.Manifest + ": " + e.Detail }

func manifestErrorf(format string, args ...any) error {
	return &ManifestError{fmt.Sprintf(format, args...)}
}

// CheckDecoding compares what decoding does if it knows only the manifest with what it does by the
// original and its plan: which files it writes, with which headers and SHA-256, and which stored
// bytes it reads for each tensor. It returns nil if the model restores the original without it.
// files are the original's. Call it only if the pair holds the same weights: until then, the plan
// may be wrong, because it goes by the model's dict.
//
// The error is ErrNoManifest, a *ManifestError, or a *LeftOutError that the plan has too, or says
// that no decoding writes such files.
func (p Pair) CheckDecoding(files []model.File) error {
	if p.DF11.Manifest == nil {
		return ErrNoManifest
	}
	if err := checkPaths(files); err != nil {
		return err
	}
	_, byPlan, left := p.Rebuilder(1, nil)
	listed, byManifest, err := ofManifest(p.DF11, 1, nil)
	switch isLeft := len(p.DF11.Manifest.Dropped) > 0; {
	case left != nil && isLeft:
		return left
	case left != nil:
		return manifestErrorf("it doesn't list the tensors that were left out")
	case err != nil:
		return &ManifestError{strings.TrimPrefix(err.Error(), names.Manifest+": ")}
	}
	if err := compareFiles(listed, files); err != nil {
		return err
	}
	return byManifest.compare(byPlan, files)
}

// compareFiles compares the files that the manifest lists with the original's. It skips a SHA-256
// that the original's lack.
func compareFiles(listed, files []model.File) error {
	at := func(list []model.File, f model.File) int {
		return slices.IndexFunc(list, func(x model.File) bool { return x.Path == f.Path })
	}
	for _, f := range listed {
		if at(files, f) < 0 {
			return manifestErrorf("the original has no %q", f.Path)
		}
	}
	for _, f := range files {
		i := at(listed, f)
		if i < 0 {
			return manifestErrorf("it doesn't list %s", f.Path)
		}
		switch x := listed[i]; {
		case x.Size != f.Size:
			return manifestErrorf("%s has %d bytes, the manifest has %d", f.Path, f.Size, x.Size)
		case string(x.Header.Raw) != string(f.Header.Raw):
			return manifestErrorf("it has another header of %s", f.Path)
		case f.SHA256 != "" && x.SHA256 != f.SHA256:
			return manifestErrorf("sha256 of %s is %s, the manifest has %s", f.Path, f.SHA256,
				x.SHA256)
		}
	}
	return nil
}

// compare returns an error if r reads other stored bytes than plan for a tensor of files.
func (r *Rebuilder) compare(plan *Rebuilder, files []model.File) error {
	units := map[*spans.Unit]*spans.Unit{} // the plan's by r's
	for _, f := range files {
		for _, t := range f.Header.Tensors {
			mine, want := r.places[t.Name], plan.places[t.Name]
			if !slices.EqualFunc(mine, want, r.same) {
				return manifestErrorf("it has another place for tensor %s", t.Name)
			}
			for i, p := range mine {
				if r.decodes(p) {
					units[p.unit] = want[i].unit
				}
			}
		}
	}
	for mine, want := range units {
		if !slices.Equal(mine.Sizes(), want.Sizes()) {
			return manifestErrorf("it has other tensors in module %s", want.Path)
		}
	}
	return nil
}

// decodes reports whether a place is in a module that is stored as DF11.
func (r *Rebuilder) decodes(p place) bool { return p.unit != nil && r.model.Coded(p.unit.Path) }

// same reports whether two places hold the same stored bytes, restored in the same way.
func (r *Rebuilder) same(a, b place) bool {
	switch isCoded := r.decodes(a); {
	case a.widen != b.widen || isCoded != r.decodes(b):
		return false
	case isCoded:
		return a.unit.Path == b.unit.Path && a.elem == b.elem && a.nElems == b.nElems
	}
	return a.name == b.name && a.part == b.part && a.from == b.from && a.size == b.size
}
