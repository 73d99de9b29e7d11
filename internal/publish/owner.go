package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An Owner is a conversion that asks what it may touch in a target. One rule answers, for folders
// and repos:
//
//   - A journal or a manifest is ours if it is of this result (claim.go).
//   - A file is ours if such a journal or manifest lists it as it is, and says that a run wrote it.
//   - What is ours is replaced, or deleted if the result has no file of that path.
//   - A file that a run finds with the very content to be written is kept: it stays, and is not ours.
//   - Any other file stays. If it has the path of a file to be written, it is in the way; so are
//     weights that a loader would read with the result. That is a ConflictError. Force overwrites
//     what is in the way when the run begins, and deletes nothing.
//   - A card that isn't ours doesn't conflict: the result goes without a card.
//
// Anyone who can write to a target can forge journals and manifests there. So the rule decides what
// may be replaced, never what is right.
//
// A run judges a target when it begins, and judges what others have changed before every commit:
// two runs that begin at the same time both find the target free. A journal or a manifest of another
// plan that has come since is a TakenError, unless this run has sent it. Every commit brings the
// journal that lists its files.
type Owner struct {
	Digest string // of the plan
	// of everything that decides the bytes of each output, by path
	Digests map[string]string
	Origin
	Part  string // names the journal
	Force bool   // what is in the way when a run begins may be overwritten

	identity plan.Identity
	sources  map[string][]int         // the weight files that each output is made from
	former   map[string]plan.OutputID // what outputs were called before, by their path
	config   string                   // path of config.json
	// every file of the result: what pins its content at the source, "" if nothing does
	written map[string]string
	loaded  map[string]bool // a loader reads every .safetensors file in these folders
}

// An Origin is what a run knows of its source.
type Origin struct {
	Repo   string // Hub repo that the weights come from; "" if it is not known
	Commit string // of Repo; "" if it is not known
	Local  bool   // only their SHA-256 pins the weights
	// Leads is [hub.Client.Leads] of the source's Hub. Nil means that no Hub can be asked.
	Leads func(ctx context.Context, repo string) (string, error)
	// Weights returns the weight files with the SHA-256 of each, if it is known or can be
	// computed. Nil means no file.
	Weights func(ctx context.Context) ([]names.File, error)
	// Content returns the SHA-256 of a file that the result copies from a local source, and "" for
	// any other file, because a commit pins the files of a Hub. Nil means no file.
	Content func(ctx context.Context, name string) (string, error)
}

// NewOwner returns the owner of what a part of a plan makes of its source.
func NewOwner(p *plan.Plan, from Origin, part string, force bool) *Owner {
	w := &Owner{Digest: p.Digest(), Digests: p.OutputDigests(), Origin: from, Part: part, Force: force,
		identity: plan.IdentityOf(p, from.Repo), sources: p.OutputSources(),
		former: p.FormerOutputs(), config: p.ConfigPath(),
		written: map[string]string{}, loaded: map[string]bool{}}
	for _, f := range p.OutputFiles {
		w.written[f.Path] = ""
	}
	for _, name := range []string{p.RemainderIndex, p.ConfigPath(), names.Card,
		names.Chart, names.Manifest} {
		if name != "" {
			w.written[name] = ""
		}
	}
	for _, f := range slices.Concat(p.Copied, p.Components) {
		if f.Path != p.ConfigPath() {
			w.written[f.Path] = f.ETag
		}
	}
	for name := range w.written {
		// which loads one file by its name
		if reader.IsSafetensors(name) && p.Layout != catalog.ComfyUI {
			w.loaded[path.Dir(name)] = true
		}
	}
	return w
}

// writes reports whether the result has a file.
func (w *Owner) writes(name string) bool {
	_, written := w.written[name]
	return written
}

// loads reports whether a loader reads a file as weights of the result.
func (w *Owner) loads(name string) bool {
	return reader.IsSafetensors(name) && w.loaded[path.Dir(name)]
}

// A snapshot is what a folder or a branch holds at one moment.
type snapshot struct {
	where string // for errors
	// of the files that there are. Two versions differ if the contents do: a hash, or size and time
	versions map[string]string
	listed   map[string]names.File // the files as a Hub lists them; nil for a folder
	contents
}

// contents are what the files of a snapshot hold.
type contents interface {
	// version returns the version of a file that a claim lists; "" if it is not there.
	version(name string) (string, error)
	read(ctx context.Context, name string) ([]byte, error)
	// file returns a file with its SHA-256. In a folder, that is a hash of the kind that like is, if
	// it isn't "".
	file(ctx context.Context, name, like string) (names.File, error)
}

// A judge knows whose the files of one folder or branch are, on behalf of a conversion.
type judge struct {
	*Owner
	journal string // of this run
	work    bool   // the target is a work folder
	force   bool   // what is in the way when the run begins may be overwritten
	sent    bool   // this run has sent its journal, perhaps without an answer
}

// judge returns one for a target with its journals in a folder.
func (w *Owner) judge(journals string, force bool) *judge {
	return &judge{Owner: w, journal: path.Join(journals, journalName(w.Part)), force: force}
}

// hasSent reports whether a file is the journal that this run has sent.
func (j *judge) hasSent(name string) bool { return name == j.journal && j.sent }

// inspect looks at what has changed in a target since the last inspection, nil when the run begins.
// A ConflictError comes with the inspection.
func (j *judge) inspect(ctx context.Context, s snapshot, last *Inspection) (*Inspection, error) {
	x := &judgment{judge: j, snapshot: s, begins: last == nil, last: last,
		in: &Inspection{Where: s.where, Ours: map[string]names.File{}, Kept: map[string]bool{},
			versions: maps.Clone(s.versions), files: s.listed,
			listed: map[string][]names.File{}, pinned: map[string]names.File{},
			claims: map[string]ledger.Claim{}}}
	if x.begins {
		x.last = &Inspection{}
	}
	for _, step := range []func(context.Context) error{x.readClaims, x.findListed, x.judgeFiles} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	forced := x.begins && j.force
	_, hasCard := x.in.Ours[names.Card]
	x.in.CardStays = x.in.versions[names.Card] != "" && !hasCard && !forced &&
		(x.changed(names.Card) || x.last.CardStays)
	x.in.Current = j.isCurrent(x.in)
	if len(x.Files)+len(x.Overwritten) == 0 || forced {
		return x.in, nil
	}
	x.Where, x.Of = s.where, x.in.stranger
	return x.in, &x.ConflictError
}

// A judgment is one inspection in the making.
type judgment struct {
	*judge
	snapshot
	begins bool
	last   *Inspection // an empty one when the run begins
	in     *Inspection
	ConflictError
}

// changed reports whether a file is another than at the last inspection.
func (x *judgment) changed(name string) bool { return x.in.versions[name] != x.last.versions[name] }

// readClaims reads the journals and the manifest that have come, and keeps what the others said.
func (x *judgment) readClaims(ctx context.Context) error {
	maps.Copy(x.in.listed, x.last.listed)
	maps.Copy(x.in.pinned, x.last.pinned)
	maps.Copy(x.in.claims, x.last.claims)
	maps.DeleteFunc(x.in.claims, func(name string, _ ledger.Claim) bool { return x.changed(name) })
	x.in.stranger = x.last.stranger
	if x.in.versions[names.Manifest] != "" {
		x.in.Manifest = x.last.Manifest
		x.in.Made = x.last.Made && !x.changed(names.Manifest)
	}
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		if name != names.Manifest && !IsJournal(name) || !x.changed(name) {
			continue
		}
		b, err := x.read(ctx, name)
		if err != nil {
			return err
		}
		c, file := x.claim(name, b), names.File{Path: name, Size: int64(len(b)), SHA256: sumOf(b)}
		who, err := x.author(ctx, c)
		if err == nil && !x.begins {
			err = x.refuseTaken(who, c.Result)
		}
		if err != nil {
			return err
		}
		if c, err = x.translate(ctx, c); err != nil {
			return err
		}
		x.accept(file, who, c)
	}
	return nil
}

// claim returns what a journal or a manifest claims, nothing if it is broken.
func (x *judgment) claim(name string, b []byte) ledger.Claim {
	if IsJournal(name) {
		return ledger.ReadJournal(b)
	}
	if x.in.Manifest, _ = metadata.ParseManifest(b, 0); x.in.Manifest == nil {
		return ledger.Claim{}
	}
	return ledger.OfManifest(x.in.Manifest)
}

// accept takes the claim of a file as ours, if it is of this result.
func (x *judgment) accept(file names.File, who author, c ledger.Claim) {
	switch {
	case who == unknown || x.work && c.Keeps:
		return
	case who == stranger:
		x.in.stranger = c.Result.Unlike(x.identity)
		return
	}
	x.in.Ours[file.Path] = file
	files := c.Others
	for _, o := range c.Outputs {
		files = append(files, o.File())
		if o.From != "" {
			files = append(files, o.There())
		}
	}
	for _, f := range files {
		x.in.listed[f.Path] = append(slices.Clip(x.in.listed[f.Path]), f)
		if who == same && c.Commit == x.Commit {
			x.in.pinned[f.Path] = f
		}
	}
	if who >= equal || !x.Local {
		x.in.claims[file.Path] = c
	}
	x.in.Made = x.in.Made || who == same && file.Path == names.Manifest
}

// refuseTaken refuses the claim of another plan that has come while the run worked.
func (x *judgment) refuseTaken(who author, result plan.Identity) error {
	switch who {
	case stranger:
		return &TakenError{x.where, result.Unlike(x.identity)}
	case former, equal:
		return &TakenError{x.where, result.Source + " at another commit or with other flags"}
	}
	return nil
}

// findListed adds the files that claims list to the versions.
func (x *judgment) findListed(context.Context) error {
	for name := range x.in.listed {
		version, err := x.version(name)
		if err != nil {
			return err
		}
		if version != "" {
			x.in.versions[name] = version
		}
	}
	return nil
}

// judgeFiles finds out which files are ours, and which of the others may not stay as they are.
func (x *judgment) judgeFiles(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		file, ours, err := x.ours(ctx, name)
		if err == nil && !ours {
			x.in.Kept[name], err = x.keeps(ctx, name)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", x.where, err)
		case ours:
			x.in.Ours[name] = file
		case x.in.Kept[name] || name == names.Card || !x.changed(name):
		case x.writes(name) || name == x.journal || x.work && inState(name):
			x.Overwritten = append(x.Overwritten, name)
		case x.loads(name) && !x.work:
			x.Files = append(x.Files, name)
		}
	}
	return nil
}

// ours reports whether a file is ours. A run of this plan for this commit wrote what the
// commit pins. Some Hubs list its SHA-256 with the size of an older file; it's ours all the same.
func (x *judgment) ours(ctx context.Context, name string) (file names.File, ours bool, err error) {
	if !x.changed(name) {
		file, ours = x.last.Ours[name]
		return file, ours, nil
	}
	if file, ours = x.in.Ours[name]; ours { // its claim was accepted
		return file, true, nil
	}
	file, ours = x.in.pinned[name]
	if pin := x.written[name]; ours && pin != "" && pin == x.in.versions[name] {
		return file, true, nil
	}
	if len(x.in.listed[name]) == 0 {
		return file, false, nil
	}
	file, err = x.file(ctx, name, "")
	return file, err == nil && slices.ContainsFunc(x.in.listed[name],
		func(f names.File) bool { return f.SHA256 == file.SHA256 }), err
}

// keeps reports whether a file that isn't ours has the content to be written.
func (x *judgment) keeps(ctx context.Context, name string) (bool, error) {
	pin, written := x.written[name]
	switch {
	case !x.changed(name):
		return x.last.Kept[name], nil
	case !written || name == names.Card || x.work:
		return false, nil // in a work folder, only the journal says whose a file is
	case pin == "" && x.Content != nil:
		var err error
		if pin, err = x.Content(ctx, name); err != nil {
			return false, err
		}
	}
	if pin == "" || pin == x.in.versions[name] {
		return pin != "", nil
	}
	file, err := x.file(ctx, name, pin)
	return file.SHA256 == pin, err
}

// isCurrent reports whether a target holds the finished result of the plan, and no other file of
// ours.
func (w *Owner) isCurrent(in *Inspection) bool {
	for name := range in.Ours {
		if !w.writes(name) {
			return false
		}
	}
	return in.isOf(w.Commit) && in.Manifest.Plan.Rules == plan.Rules && in.Intact()
}

// Removes lists the files that a run removes in the end: they're ours, and the result has none of
// these names.
func (w *Owner) Removes(in *Inspection) []string {
	names := slices.Sorted(maps.Keys(in.Ours))
	return slices.DeleteFunc(names, func(name string) bool { return w.writes(name) || IsJournal(name) })
}

// A ConflictError reports files in a target that aren't ours. Overwritten have names of the result's
// files. Files are weights that a loader would read along with the result (docs/format.md §13).
type ConflictError struct {
	Where              string
	Files, Overwritten []string
	// the source of the conversion in the target; "" if there is none or it isn't known
	Of string
}

func (e *ConflictError) Error() string {
	s := fmt.Sprintf("%s holds other .safetensors files: %s", e.Where, human.List(e.Files))
	if len(e.Overwritten) > 0 {
		s = fmt.Sprintf(
			"%s holds files that are not of this conversion and would be overwritten: %s", e.Where,
			human.List(e.Overwritten))
	}
	if e.Of != "" {
		s += " (there is a conversion of " + e.Of + ")"
	}
	return s
}

// TakenError says that another run has written to a target since this run began. Its files are left
// as they are.
type TakenError struct {
	Where string
	Of    string // its source; "" if it is not known
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("since this run began, a conversion of %s has written to %s",
		cmp.Or(e.Of, "another model"), e.Where)
}

// IsJournal reports whether a file is the journal of a conversion that hasn't finished its target.
func IsJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == names.JournalDir || dir == names.StateDir) && path.Ext(name) == ".json"
}

// journalName is the name of a part's journal in its folder.
func journalName(part string) string { return part + ".json" }
