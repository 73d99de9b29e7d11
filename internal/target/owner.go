package target

import (
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
)

// An Owner is a conversion that asks what it may touch in a target. One rule answers, for folders
// and repos:
//
//   - A journal or a manifest is ours if it is of this plan, or of another plan of the same source.
//   - A file is ours if such a journal or manifest lists its path with the sha256 that the file has.
//   - What is ours is replaced, or deleted if the result has no file of that path.
//   - Any other file stays. If it has the path of a file to be written, and other bytes, it is in the way; so are weights that a
//     loader would read with the result. That is a ConflictError. Force overwrites what is in the way when the run begins, and
//     deletes nothing.
//   - A card that is not ours is in nobody's way: the result goes without one.
//
// Who can write to a target can forge journals and manifests there. So the rule tells what may be
// replaced, never what is right.
//
// A run judges a target when it begins, and judges what others have changed before every commit:
// two runs that begin at the same time both find the target free. A journal or a manifest that has
// come since, of another plan or of this plan with other bytes than this run's outputs, is a
// TakenError, unless this run has sent it. Every commit brings the journal that lists its files.
type Owner struct {
	Digest string // of the plan
	Source string // Hub repo that the weights come from; "" if it is not known
	Part   string // names the journal
	Force  bool   // what is in the way when a run begins may be overwritten
	// every file of the result: what pins its content at the source, "" if nothing does
	written map[string]string
	loaded  map[string]bool // folders of which a loader reads every .safetensors file
	// content returns the sha256 of a file that the result takes over from a local source, "" of
	// any other. The files of a Hub are pinned.
	content func(ctx context.Context, name string) (string, error)
}

// NewOwner returns the owner of what a part of a plan makes of a source. content returns the sha256
// of a file that the result takes over from a local source, "" of any other; nil means no file.
func NewOwner(p *plan.Plan, source, part string, force bool,
	content func(ctx context.Context, name string) (string, error)) *Owner {
	w := &Owner{Digest: p.Digest(), Source: source, Part: part, Force: force, content: content,
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
		if plan.IsSafetensors(name) && p.Layout != catalog.ComfyUI {
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
	return plan.IsSafetensors(name) && w.loaded[path.Dir(name)]
}

// A claimant is what the rule knows of the author of a journal or a manifest.
type claimant int

const (
	unknown  claimant = iota // the file says nothing
	stranger                 // another conversion
	former                   // another plan of the same source
	same                     // this plan
)

// claimant says who has made a claim.
func (w *Owner) claimant(c ledger.Claim) claimant {
	switch {
	case c.Plan == "":
		return unknown
	case c.Plan == w.Digest:
		return same
	case c.Source != "" && c.Source == w.Source:
		return former
	}
	return stranger
}

// A snapshot is what a folder or a branch holds at one moment.
type snapshot interface {
	where() string // for errors
	// versions returns the files that there are. Two versions differ if the contents do: a hash, or
	// size and time.
	versions() map[string]string
	// list returns the files as a Hub lists them; nil for a folder.
	list() map[string]names.File
	// version returns the version of a file that a claim lists; "" if it is not there.
	version(name string) (string, error)
	read(ctx context.Context, name string) ([]byte, error)
	sum(ctx context.Context, name string) (string, error) // sha256
	// equals reports whether a file has the content that a pin of the source stands for.
	equals(ctx context.Context, name, pin string) (bool, error)
}

// An Inspection is what a run found in a target when it looked at it. It never changes.
type Inspection struct {
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	// files that may be replaced or deleted, with their sha256; "" if they have the bytes to be
	// written
	Ours      map[string]string
	CardStays bool // the card is somebody else's
	// it is the finished result of the plan, and nothing of ours is beside it
	Current  bool
	versions map[string]string       // of all files
	files    map[string]names.File   // as a Hub lists them
	listed   map[string][]string     // sha256 that files of ours have had, by path
	claims   map[string]ledger.Claim // that have come or changed since the inspection before
	stranger string                  // source of somebody else's journal or manifest
}

// A judge knows whose the files of one folder or branch are, on behalf of a conversion.
type judge struct {
	*Owner
	journal string // of this run
	work    bool   // the target is a work folder
	force   bool   // what is in the way when the run begins may be overwritten
	// sha256 of the journals that this run has sent, also where no answer came
	sent map[string]bool
}

// judge returns one for a target with its journals in a folder.
func (w *Owner) judge(journals string, force bool) *judge {
	return &judge{Owner: w, journal: path.Join(journals, journalName(w.Part)), force: force,
		sent: map[string]bool{}}
}

// hasSent reports whether a file is the journal that this run has sent.
func (j *judge) hasSent(name string) bool { return name == j.journal && len(j.sent) > 0 }

// inspect looks at what has changed in a target since the last inspection, nil when the run begins.
// made are the sha256 of the run's outputs, by path. A ConflictError comes with the inspection.
func (j *judge) inspect(ctx context.Context, s snapshot, last *Inspection,
	made map[string]string) (*Inspection, error) {
	x := &judgment{judge: j, snapshot: s, begins: last == nil, last: last, made: made,
		in: &Inspection{Ours: map[string]string{}, versions: maps.Clone(s.versions()),
			files: s.list(), listed: map[string][]string{}, claims: map[string]ledger.Claim{}}}
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
	x.Where, x.Of = s.where(), x.in.stranger
	return x.in, &x.ConflictError
}

// A judgment is one inspection in the making.
type judgment struct {
	*judge
	snapshot
	begins bool
	last   *Inspection       // an empty one when the run begins
	made   map[string]string // sha256 of the run's outputs, by path
	in     *Inspection
	ConflictError
}

// changed reports whether a file is another than at the last inspection.
func (x *judgment) changed(name string) bool { return x.in.versions[name] != x.last.versions[name] }

// readClaims reads the journals and the manifest that have come, and keeps what the others said.
func (x *judgment) readClaims(ctx context.Context) error {
	maps.Copy(x.in.listed, x.last.listed)
	x.in.stranger = x.last.stranger
	if x.in.versions[names.Manifest] != "" {
		x.in.Manifest = x.last.Manifest
	}
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		if name != names.Manifest && !IsJournal(name) || !x.changed(name) {
			continue
		}
		b, err := x.read(ctx, name)
		if err != nil {
			return err
		}
		c, sum := x.claim(name, b), sumOf(b)
		if err := x.refuseTaken(c, sum); err != nil && !x.begins {
			return err
		}
		x.accept(name, sum, c)
	}
	return nil
}

// claim returns what a journal or a manifest claims, nothing if it is broken.
func (x *judgment) claim(name string, b []byte) (c ledger.Claim) {
	if IsJournal(name) {
		c = ledger.ReadJournal(b)
	} else if x.in.Manifest, _ = metadata.ParseManifest(b, 0); x.in.Manifest != nil {
		c = ledger.OfManifest(x.in.Manifest)
	}
	x.in.claims[name] = c
	return c
}

// accept takes the claim of a file as ours, if it is of this plan or of its source.
func (x *judgment) accept(name, sum string, c ledger.Claim) {
	who := x.claimant(c)
	switch {
	case who == unknown || x.work && c.Keeps:
		return
	case who == stranger:
		x.in.stranger = c.Source
		return
	}
	x.in.Ours[name] = sum
	list := func(path string, sums ...string) {
		x.in.listed[path] = slices.Concat(x.in.listed[path], sums)
	}
	for path, o := range c.Outputs {
		list(path, o.SHA256)
	}
	for path, sums := range c.Others {
		list(path, sums...)
	}
}

// refuseTaken refuses the claim of a file that has come while the run worked, but for its own, and
// this plan's with the same outputs.
func (x *judgment) refuseTaken(c ledger.Claim, sum string) error {
	if x.sent[sum] {
		return nil
	}
	if who := x.claimant(c); who == stranger || who == former {
		return &TakenError{Where: x.where(), Of: c.Source, Same: who == former}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		if ours, theirs := x.made[name], c.Outputs[name].SHA256; ours != "" && theirs != "" &&
			ours != theirs {
			return &TakenError{Where: x.where(), Of: c.Source, File: name}
		}
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
		sum, ours, err := x.ours(ctx, name)
		switch {
		case err != nil:
			return err
		case ours:
			x.in.Ours[name] = sum
		case name == names.Card || !x.changed(name):
		case x.writes(name) || name == x.journal || x.work && inState(name):
			x.Overwritten = append(x.Overwritten, name)
		case x.loads(name) && !x.work:
			x.Files = append(x.Files, name)
		}
	}
	return nil
}

// ours reports whether a file is ours, and its sha256; "" if it has the bytes to be written.
func (x *judgment) ours(ctx context.Context, name string) (sum string, ours bool, err error) {
	if !x.changed(name) {
		sum, ours = x.last.Ours[name]
		return sum, ours, nil
	}
	if sum, ours = x.in.Ours[name]; ours { // its claim was accepted
		return sum, true, nil
	}
	pin, written := x.written[name]
	if pin != "" && pin == x.in.versions[name] {
		return "", true, nil
	}
	if sums := x.in.listed[name]; len(sums) > 0 {
		sum, err = x.sum(ctx, name)
		if err != nil {
			return "", false, fmt.Errorf("%s: %w", x.where(), err)
		}
		if slices.Contains(sums, sum) {
			return sum, true, nil
		}
	}
	if written && name != names.Card {
		ours, err = x.equals(ctx, name, pin)
	}
	return "", ours, err
}

// isCurrent reports whether a target holds the finished result of the plan, and nothing of ours
// beside it.
func (w *Owner) isCurrent(in *Inspection) bool {
	if in.Manifest == nil || in.Manifest.Plan.Digest != w.Digest {
		return false
	}
	for name := range w.written {
		if _, ours := in.Ours[name]; !ours && !(name == names.Card && in.CardStays) {
			return false
		}
	}
	for name := range in.Ours {
		if !w.writes(name) {
			return false
		}
	}
	for _, o := range in.Manifest.Outputs {
		f, listed := in.files[o.Path]
		if listed && !f.MayBe(o.File()) && !(o.Path == names.Card && in.CardStays) {
			return false
		}
	}
	return true
}

// ManifestSHA256 is that of the manifest that was there when the target was looked at; "" if there
// was none.
func (in *Inspection) ManifestSHA256() string { return in.Ours[names.Manifest] }

// former is what a journal says of the files that are ours: their sha256, by path.
func (in *Inspection) former() map[string]string {
	files := maps.Clone(in.Ours)
	maps.DeleteFunc(files, func(_, sum string) bool { return sum == "" })
	return files
}

// with returns the inspection with other versions: the run knows what it has written since.
func (in *Inspection) with(versions map[string]string) *Inspection {
	now := *in
	now.versions = versions
	return &now
}

// ConflictError says that a target holds files that are not ours: Overwritten are in the way of
// files of the result, and the loader would read Files, which are weights, with the result
// (docs/format.md §13).
type ConflictError struct {
	Where              string
	Files, Overwritten []string
	// the source of the conversion that is there; "" if there is none or it is not known
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
	Same  bool   // it is a conversion of the same source, for another commit or with other flags
	// it is the same conversion, of a source with other bytes: the first output that differs
	File string
}

func (e *TakenError) Error() string {
	of := "another model"
	switch {
	case e.File != "":
		of = "a source with the same name and other bytes (" + e.File + " differs)"
	case e.Same:
		of = e.Of + " at another commit or with other flags"
	case e.Of != "":
		of = e.Of
	}
	return fmt.Sprintf("since this run began, a conversion of %s has written to %s", of, e.Where)
}

// IsJournal tells the journals of conversions that have not finished a target.
func IsJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == names.JournalDir || dir == names.StateDir) && path.Ext(name) == ".json"
}

// journalName is the name of a part's journal in its folder.
func journalName(part string) string { return part + ".json" }
