package target

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A Settled target holds what a conversion would publish there.
type Settled struct {
	Push
	Source   *hub.RepoInfo // at the commit of the manifest
	Manifest *metadata.Manifest
	SHA256   string // of the manifest
	Commit   string // of the target
}

// Settled looks whether a target holds the result of a source at its commit, as this version of the
// program makes it when it is asked for the same. It only compares what the Hub lists with the
// manifest, which stays its author's claim, and returns nil in doubt: then a run finds out what is
// missing. The branch of a run that was killed after its last commit stays until a run
// changes the target: looking for one would take another request each time.
func (p Push) Settled(ctx context.Context, from *hub.RepoInfo, version string,
	opt plan.Options) *Settled {
	at, err := p.Hub.Peek(ctx, p.Repo, p.Revision)
	if err != nil || strings.EqualFold(at.ID, from.ID) ||
		p.visible(at, closedAt(from)) != nil {
		return nil
	}
	ref, ok := at.File(names.Manifest)
	if !ok {
		return nil
	}
	b, err := p.Hub.ReadFile(ctx, ref, maxJournalBytes)
	if err != nil {
		return nil
	}
	m, err := metadata.ParseManifest(b, 0)
	if err != nil || m.Source.Repo != from.ID || m.Source.Commit != from.SHA ||
		m.Tool.Version != version || m.Plan.Asked != opt.Asked() {
		return nil
	}
	source := from.ByPath()
	if !listsSource(m, source) || !listsResult(m, from, opt) ||
		!listsTarget(m, source, at.ByPath()) {
		return nil
	}
	p.Repo = at.ID
	return &Settled{p, from, m, sumOf(b), at.SHA}
}

// listsSource reports whether a manifest lists exactly the weights of a source.
func listsSource(m *metadata.Manifest, from map[string]hub.FileInfo) bool {
	return !slices.ContainsFunc(m.Source.Files, func(f metadata.SourceFile) bool {
		return from[f.Path].File() != names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256}
	})
}

// listsResult reports whether a manifest lists what no result of a source lacks: config.json, card,
// the files of its units, and what the files of the source become. The folders of a pipeline count
// as parts of it, since its model_index.json isn't read. As many units are listed as its run has
// verified.
func listsResult(m *metadata.Manifest, from *hub.RepoInfo, opt plan.Options) bool {
	var files []plan.File
	var paths, parts []string
	for _, f := range from.Files {
		files, paths = append(files, plan.File{Path: f.Path}), append(paths, f.Path)
	}
	s, err := plan.Look(files, opt)
	if err != nil || len(m.Units) == 0 {
		return false
	}
	single := plan.File{}
	if list, err := s.WeightFiles(nil); err == nil && s.Index == "" {
		single = list[0]
	}
	for _, name := range paths {
		if top, _, nested := strings.Cut(name, "/"); nested && top != s.Dir && s.ModelIndex != "" {
			parts = append(parts, top)
		}
	}
	kinds, converted := map[string]metadata.Kind{}, map[string]bool{}
	earlier := map[string]bool{} // verified by another run than the manifest's
	for _, o := range m.Outputs {
		kinds[o.Path], earlier[o.Path] = o.Kind, o.Earlier != nil
	}
	for _, f := range m.Source.Files {
		converted[f.Path] = f.Path == single.Path || reader.Loads(s.Dir, f.Path)
	}
	original := reader.NewOriginal(s.Layout, s.Dir, parts, paths)
	missing := func(name string) bool {
		fate, _ := original.Fate(name)
		weights := name == single.Path || reader.Loads(s.Dir, name) && reader.IsLoaded(name)
		return !converted[name] && (weights || fate <= reader.Part && kinds[name] != metadata.KindCopied)
	}
	unstored := func(u metadata.Unit) bool { return !kinds[u.File].Weights() }
	var nUnits, nWeights int64 // listed without a check by the manifest's run
	for _, u := range m.Units {
		if u.Status == metadata.DF11 && !earlier[u.File] {
			nUnits, nWeights = nUnits+1, nWeights+u.NWeights
		}
	}
	for _, v := range m.Verification {
		if v.Method == metadata.MethodCPU {
			nUnits, nWeights = nUnits-v.NUnits, nWeights-v.NWeights
		}
	}
	return nUnits == 0 && nWeights == 0 && kinds[names.Config] == metadata.KindConfig &&
		kinds[names.Card] == metadata.KindCard &&
		!slices.ContainsFunc(m.Units, unstored) && !slices.ContainsFunc(paths, missing)
}

// listsTarget reports whether a target holds every file of its manifest, copied ones as the source
// has them, and neither a journal nor other weights.
func listsTarget(m *metadata.Manifest, from, at map[string]hub.FileInfo) bool {
	listed := map[string]bool{names.Manifest: true}
	for _, o := range m.Outputs {
		listed[o.Path] = true
		held, hashes := at[o.Path], []string{o.SHA256, o.Blob}
		if o.Kind == metadata.KindCopied {
			original := from[o.Path]
			hashes = []string{cmp.Or(original.SHA256, original.BlobID)}
		}
		hash := cmp.Or(held.SHA256, held.BlobID)
		if hash == "" || held.Size != o.Size || !slices.Contains(hashes, hash) {
			return false
		}
	}
	for name := range at {
		if !listed[name] && (reader.IsSafetensors(name) || IsJournal(name)) {
			return false
		}
	}
	return true
}
