package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An Origin is the Hub repo whose weights a source has.
type Origin struct {
	Repo, Commit string
	Endpoint     string // of its Hub
	Open         bool   // its Hub says clearly that everyone may read it
	// Revision is what the caller asked for, if main was at another commit when the source was
	// opened, or if that isn't known. OffMain says that main isn't known to have the same files for
	// programs, by their hashes.
	Revision string
	OffMain  bool
	// Equal counts the weight files of a local source, which all have the SHA-256 that the Hub
	// states for the repo's. It's 0 if the source is the repo.
	Equal int
	// File is the path of a single weight file in the repo, if the local file has another one.
	File string
	// Unlike lists the files without weights that a result takes from a local source, and that
	// aren't the repo's by their hashes. The card is among them if a result takes other values from
	// it than from the repo's. OtherLicense says that the license is one of these.
	Unlike       []string
	OtherLicense bool

	listed *hub.RepoInfo // the repo at Commit
	card   []byte        // the repo's
	asked  string        // the revision that the caller gave, "" for main
	hub    *hub.Client   // of its Hub
}

// Described returns what a Hub says about a source. The model lists no files.
func Described(info *hub.RepoInfo, c *hub.Client) *Model {
	return &Model{
		ID: info.ID, Name: info.Name(), Commit: info.SHA, Endpoint: c.Endpoint(),
		Origin: &Origin{Repo: info.ID, Commit: info.SHA, Endpoint: c.Endpoint(), Open: info.Open,
			listed: info, hub: c},
		Private: info.Private, Gated: info.Gated,
		PipelineTag: info.PipelineTag,
	}
}

// NameOf returns the name of a repo without its namespace, as the user asked for it: the Hub
// redirects from names that a repo had before, and a result keeps the name that it has got from
// one.
func NameOf(asked string, info *hub.RepoInfo) string {
	if name := path.Base(asked); !strings.EqualFold(name, info.Name()) {
		return name
	}
	return info.Name()
}

// Closed says why not everyone may read the source, or returns "" if its Hub said that everyone may
// when the source was opened. A local source has no owner to ask.
func (m *Model) Closed() string {
	switch o := m.Origin; {
	case o == nil:
		return "the source is local, so no repo shows who may see it"
	case m.DecodedFrom != nil && !m.DecodedFrom.Open:
		return "the Hub doesn't say clearly that everyone may read " + m.DecodedFrom.Name
	case o.Open && len(o.Unlike) > 0:
		return "of what is copied, these files aren't those of " + o.Repo + ": " + strings.Join(o.Unlike, ", ")
	case o.Open:
		return ""
	case m.Private:
		return o.Repo + " is private"
	case m.Gated != "":
		return o.Repo + " is gated"
	default:
		return "the Hub doesn't say clearly that everyone may read " + o.Repo
	}
}

// ClosedNow is Closed by what the Hubs say now: a repo may turn private during a run. A repo that
// can't be read any more is closed. The error says that a Hub doesn't answer.
func (m *Model) ClosedNow(ctx context.Context) (string, error) {
	if m.Origin == nil {
		return m.Closed(), nil
	}
	now, origin := *m, *m.Origin
	now.Origin = &origin
	info, why, err := describe(ctx, origin.hub, origin.Repo, origin.Commit)
	if why != "" || err != nil {
		return why, err
	}
	origin.Open, now.Private, now.Gated = info.Open, info.Private, info.Gated
	if d := m.DecodedFrom; d != nil && d.Open {
		info, why, err := describe(ctx, d.hub, d.Name, d.Commit)
		if why != "" || err != nil {
			return why, err
		}
		from := *d
		from.Open, now.DecodedFrom = info.Open, &from
	}
	return now.Closed(), nil
}

// describe asks a Hub about a commit of a repo. If the Hub no longer shows it, why says so.
func describe(ctx context.Context, c *hub.Client, repo, commit string) (info *hub.RepoInfo, why string,
	err error) {
	info, err = c.Describe(ctx, repo, commit)
	for _, gone := range []error{hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrGated,
		hub.ErrForbidden, hub.ErrDisabled} {
		if errors.Is(err, gone) {
			return nil, "the Hub no longer shows " + repo, nil
		}
	}
	return info, "", err
}

// CompareMain finds Revision and OffMain of the origin, if there is one: it compares the revision
// that the caller gave with what main has now. It makes one request for that, and reads no files.
func (m *Model) CompareMain(ctx context.Context) {
	o := m.Origin
	if o == nil || o.asked == "" || o.asked == "main" {
		return
	}
	main, err := o.hub.Info(ctx, o.Repo, "")
	if err != nil {
		o.Revision, o.OffMain = o.asked, true
		return
	}
	if main.SHA == o.Commit {
		return
	}
	files := main.ByPath()
	o.Revision = o.asked
	o.OffMain = slices.ContainsFunc(o.listed.Files, func(f hub.FileInfo) bool {
		hash, their := f.Hash(), files[f.Path]
		return reader.UseOf(f.Path) != reader.Ignores && (hash == "" || hash != their.Hash())
	})
}

// Differs compares the weight files with those of a repo, by path and SHA-256. It says how the
// first one differs, or returns "" if all are equal.
func (m *Model) Differs(from *hub.RepoInfo) string {
	if len(m.Listing.Weights) == 0 {
		return "no weights were compared"
	}
	files := from.ByPath()
	for _, w := range m.Files() {
		switch f, ok := files[w.Path]; {
		case !ok:
			return fmt.Sprintf("%s has no %s", from.ID, w.Path)
		case f.SHA256 == "" || w.SHA256 == "":
			return "the SHA-256 of " + w.Path + " isn't known"
		case f.SHA256 != w.SHA256 || f.Size != w.Size:
			return fmt.Sprintf("%s isn't that of %s, by its SHA-256", w.Path, from.ID)
		}
	}
	return ""
}

// A NotOriginalError says that a local source isn't a copy of the repo that it was said to be one
// of.
type NotOriginalError struct {
	Repo   string // with the commit
	Detail string // how the first file differs
}

func (e *NotOriginalError) Error() string {
	return fmt.Sprintf("these weight files aren't those of %s: %s", e.Repo, e.Detail)
}

// Prove makes a repo the origin of a local source. The weight files that a reader of the repo opens
// must be the source's, each by the SHA-256 that the Hub states. If revision is "", Prove compares
// with the commit that a download noted, and with main. If these files aren't there, the error is a
// NotOriginalError. Unless names or sizes differ, it reads the source's weights, and it reads no
// weights of the repo. A SHA-256 that the model has already counts. opt are the source's own
// options. Prove also reads the other files of which the plan's result takes something, and
// Origin.Unlike lists the ones that aren't the repo's. If the source's card says nothing that a
// result takes, the model gets what the repo's card says.
func (m *Model) Prove(ctx context.Context, src Source, p *plan.Plan, c *hub.Client, repo,
	revision string, opt plan.Options, workers int) error {
	err := m.proveWeights(ctx, src, c, repo, revision, opt, workers)
	if err != nil {
		return err
	}
	if err = m.compareTaken(ctx, src, p.Takes()); err != nil {
		m.Origin = nil // it's open only if all files were compared
	}
	return err
}

// proveWeights is Prove without the other files.
func (m *Model) proveWeights(ctx context.Context, src Source, c *hub.Client, repo, revision string,
	opt plan.Options, workers int) error {
	if from := m.From; from != nil {
		opt.Layout, opt.WeightFile = catalog.Diffusers, ""
		if dir := path.Dir(from.Listing.Weights[0].Path); dir != "." {
			opt.Component = dir
		}
		err := from.proveWeights(ctx, OriginalSource(src), c, repo, revision, opt, workers)
		m.Origin, m.Private, m.Gated, m.PipelineTag = from.Origin, from.Private, from.Gated, from.PipelineTag
		return err
	}
	opt.WeightFile = cmp.Or(opt.WeightFile, m.Listing.WeightFile)
	sums := slices.Clone(m.SHA256)
	differs := func(err error) bool { _, ok := errors.AsType[*NotOriginalError](err); return ok }
	var first error
	if commit := m.downloadedCommit(); revision == "" && commit != "" {
		first = m.prove(ctx, src, c, repo, commit, opt, sums, workers)
		if !differs(first) && !errors.Is(first, hub.ErrRevisionNotFound) {
			return first
		}
	}
	err := m.prove(ctx, src, c, repo, revision, opt, sums, workers)
	if differs(err) && differs(first) {
		return first
	}
	return err
}

// prove is proveWeights for one revision, "" for main. It fills in sums, and leaves the source's
// own card.
func (m *Model) prove(ctx context.Context, src Source, c *hub.Client, repo, revision string,
	opt plan.Options, sums []string, workers int) error {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return err
	}
	_, f, err := openRepo(c, info)
	if err != nil {
		return err
	}
	if opt.WeightFile != "" {
		opt.WeightFile = m.placeIn(f.list, opt.WeightFile)
	}
	their := Described(info, c)
	their.Origin.asked = revision
	original, _, err := openSource(ctx, f, their, opt, m.memory)
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok {
		// a refusal calls what it looked at the source, which the repo isn't here
		return &NotOriginalError{info.ID, strings.Replace(refused.Detail, "the source ", "it ", 1)}
	}
	if err != nil {
		return err
	}
	defer original.Close()
	if err := m.compare(ctx, src, their, sums, workers); err != nil {
		return err
	}
	their.CompareMain(ctx)
	m.Origin, m.SHA256 = their.Origin, sums
	m.Origin.card = their.card
	m.Origin.Equal = len(sums)
	if w := their.Listing.Weights[0].Path; w != m.Listing.Weights[0].Path {
		m.Origin.File = w
	}
	m.Private, m.Gated = their.Private, their.Gated
	m.PipelineTag = their.PipelineTag
	return nil
}

// compareTaken compares files with those of the repo that has the weights, by path and hash, and
// lists in Origin.Unlike those that differ or that the repo lacks. Of the cards, it compares what a
// result takes.
func (m *Model) compareTaken(ctx context.Context, src Source, files []plan.File) error {
	m.Origin.Unlike, m.Origin.OtherLicense = nil, false
	if err := m.compareCard(); err != nil {
		return err
	}
	theirs := m.Origin.listed.ByPath()
	for _, f := range files {
		if f.Path == names.Card {
			continue
		}
		their, ok := theirs[f.Path]
		want := their.Hash()
		if ok && want != "" && their.Size == f.Size {
			ours, err := m.Hashes(ctx, src, f)
			if err != nil {
				return err
			}
			if ours.SHA256 == want || ours.Git == want {
				continue
			}
		}
		m.Origin.Unlike = append(m.Origin.Unlike, f.Path)
	}
	return nil
}

// compareCard compares the card's front matter with that of the repo's card.
func (m *Model) compareCard() error {
	ours, err := m.Card()
	if err != nil {
		return nil //nolint:nilerr // a result takes nothing of a card that can't be read
	}
	theirs, err := metadata.ParseFrontMatter(m.Origin.card)
	if err != nil {
		theirs = metadata.FrontMatter{}
	}
	if m.readers != nil { // it's made from another card, of which it has the license
		theirs = theirs.Licensing()
	}
	ours, theirs = ours.Passed(m.PipelineTag), theirs.Passed(m.PipelineTag)
	switch {
	case ours.Equal(theirs):
	case ours.Equal(metadata.FrontMatter{}.Passed(m.PipelineTag)):
		m.card, err = theirs.Block()
		return err
	default:
		m.Origin.Unlike = append(m.Origin.Unlike, names.Card)
		m.Origin.OtherLicense = !ours.HasLicenseOf(theirs)
	}
	return nil
}

// placeIn returns where a repo has a single weight file: at its own path, or else below a folder,
// or else under another name with the same size.
func (m *Model) placeIn(list []plan.File, name string) string {
	size := m.Listing.Weights[0].Size
	for _, same := range []func(f plan.File) bool{
		func(f plan.File) bool { return f.Path == name },
		func(f plan.File) bool { return path.Base(f.Path) == path.Base(name) && f.Size == size },
		func(f plan.File) bool { return reader.IsSafetensors(f.Path) && f.Size == size },
	} {
		if i := slices.IndexFunc(list, same); i >= 0 {
			return list[i].Path
		}
	}
	return name
}

// compare compares the weight files with those of a Hub's model, and fills in sums.
func (m *Model) compare(ctx context.Context, src Source, their *Model, sums []string,
	workers int) error {
	differs := func(format string, args ...any) error {
		return &NotOriginalError{fmt.Sprintf("%s@%.12s", their.ID, their.Commit), fmt.Sprintf(format, args...)}
	}
	ours, files := m.Files(), their.Files()
	if len(ours) != len(files) {
		return differs("it has %d weight files, and the source has %d", len(files), len(ours))
	}
	for i, w := range ours {
		switch f := files[i]; {
		case w.Path != f.Path && len(ours) > 1:
			return differs("the source has %s where it has %s", w.Path, f.Path)
		case w.Size != f.Size:
			return differs("%s has %d bytes there, and %d in the source", f.Path, f.Size, w.Size)
		case f.SHA256 == "":
			return differs("the Hub states no SHA-256 of %s", f.Path)
		}
	}
	var g errgroup.Group
	g.SetLimit(min(max(1, workers), sumsAtOnce))
	var wrong atomic.Bool
	for i, w := range ours {
		if wrong.Load() {
			break // files have begun in order, so one of them is the first that differs
		}
		g.Go(func() (err error) {
			if sums[i] == "" {
				// the open file, because the conversion reads that one, too
				open := func(context.Context, string) (io.ReadCloser, error) {
					return io.NopCloser(io.NewSectionReader(src.Local(i), 0, w.Size)), nil
				}
				sums[i], err = Sum(ctx, open, plan.File{Path: w.Path, Size: w.Size}, "")
			}
			if sums[i] != files[i].SHA256 {
				wrong.Store(true)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, w := range ours {
		if sums[i] != files[i].SHA256 {
			return differs("%s has another SHA-256", w.Path)
		}
	}
	return nil
}

// sumsAtOnce is how many files are hashed at once to compare them. All of these are read to their
// ends, even if the first one differs.
const sumsAtOnce = 4

// downloadedCommit returns the commit that a local source was downloaded from, by the path of a
// cache or by the note that "hf download --local-dir" leaves; "" if there is neither. It's a hint.
func (m *Model) downloadedCommit() string {
	folder, err := filepath.EvalSymlinks(m.Folder)
	if err != nil {
		return ""
	}
	if _, commit := snapshotOf(folder); commit != "" {
		return commit
	}
	b, _ := disk.Read(filepath.Join(folder, ".cache", "huggingface", "download",
		filepath.FromSlash(m.Listing.Weights[0].Path)+".metadata"), 4<<10)
	commit, _, _ := strings.Cut(string(b), "\n")
	if !names.IsCommit(commit) {
		return ""
	}
	return commit
}

// snapshotOf returns repo and commit by a path in the shared cache, or below:
// models--org--name/snapshots/COMMIT.
func snapshotOf(folder string) (repo, commit string) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		snapshots := filepath.Dir(dir)
		repo, cached := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), "models--")
		if cached && filepath.Base(snapshots) == "snapshots" && names.IsCommit(filepath.Base(dir)) {
			return strings.Replace(repo, "--", "/", 1), filepath.Base(dir)
		}
		if snapshots == dir {
			return "", ""
		}
	}
}
