package publish

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// UpToDate is a target that holds what a conversion would publish there.
type UpToDate struct {
	At       Location
	Ref      string        // of the target, as it was asked for
	Source   *hub.RepoInfo // at the commit of the manifest
	Manifest *metadata.Manifest
	SHA256   string // of the manifest
	// Published is when the target's newest commit was made; zero if the Hub doesn't say.
	Published time.Time
}

// UpToDate returns the target if it holds what a run would publish: the result of this commit of
// the source, made with the same options, by this program's rules or newer ones. It only compares
// what the Hub lists with the manifest, which stays its author's claim. In doubt, it returns nil;
// then a run finds out what is missing. c asks the source's Hub. The branch of a run that was
// killed after its last commit stays until a run changes the target: looking for one would take
// another request each time. memory is the run's budget.
func (p Push) UpToDate(ctx context.Context, from *hub.RepoInfo, c *hub.Client, asked string,
	memory int64) *UpToDate {
	at, err := p.Hub.Info(ctx, p.Repo, p.Revision)
	if err != nil || strings.EqualFold(at.ID, from.ID) {
		return nil
	}
	ref, ok := at.File(names.Manifest)
	if !ok {
		return nil
	}
	b, err := p.Hub.ReadFile(ctx, ref, metadata.MaxManifestBytes(memory))
	if err != nil {
		return nil
	}
	m, err := metadata.ParseManifest(b, memory)
	if err != nil || m.Source.Repo != from.ID || m.Source.Commit != from.SHA ||
		m.Plan.Rules < plan.Rules || m.Plan.Asked != asked ||
		!listsTarget(m, from.ByPath(), at.ByPath()) {
		return nil
	}
	if !p.namesBranch(ctx, at) {
		return nil
	}
	source, files := model.Described(from, c), from.ByPath()
	for _, w := range m.Source.Files {
		source.Listing.Weights = append(source.Listing.Weights,
			plan.WeightFile{File: plan.File{Path: w.Path, Size: w.Size}})
		source.SHA256 = append(source.SHA256, files[w.Path].SHA256)
	}
	// a run says that --public doesn't open a private target
	if v := p.Visibility(ctx, source); v.refuse(at) != nil || v.Open && v.Asked && at.Private {
		return nil
	}
	branch := p.Where().Ref()
	p.Repo = at.ID
	where := p.Where()
	where.Commit = at.SHA
	return &UpToDate{where, branch, from, m, sumOf(b), at.LastModified}
}

// namesBranch reports whether a card of ours on a branch names it. A new branch begins with main's
// card.
func (p Push) namesBranch(ctx context.Context, at *hub.RepoInfo) bool {
	ref, hasCard := at.File(names.Card)
	branch := p.Where().Branch
	if branch == "" || !hasCard {
		return true
	}
	card, err := p.Hub.ReadFile(ctx, ref, maxCardBytes)
	return err == nil && metadata.NamesBranch(card, at.ID, branch)
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
			hashes = []string{original.Hash()}
		}
		hash := held.Hash()
		if hash == "" || held.Size != o.Size || !slices.Contains(hashes, hash) {
			return false
		}
	}
	for name := range at {
		if !listed[name] && (reader.IsSafetensors(name) || names.IsJournal(name)) {
			return false
		}
	}
	return true
}
