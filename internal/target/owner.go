package target

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// An Owner tells whose a target is. It is this conversion's if a journal or a manifest there claims every weight file for it.
//
//   - A run inspects the target when it begins: every weight file has to be claimed by this plan, or by another plan of the same
//     source, for another commit or with other flags. Anything else is a ConflictError, unless Force allows it.
//   - Two runs that begin at the same time both find the target free. So a run rechecks it before every commit on what others
//     have changed. Files with the version that the last inspection saw are not judged again. A journal or a manifest of another
//     plan, or of this plan with other bytes than this run's outputs, is a TakenError; weight files that nobody claims are a
//     ConflictError again.
//
// Every change of a target brings the journal that claims its files.
type Owner struct {
	Digest  string          // of the plan
	Source  string          // Hub repo that the weights come from; "" if it is not known
	Force   bool            // weights of others may stay, and be overwritten
	planned map[string]bool // weight files of the plan
}

// NewOwner is the owner of what a plan makes of a source.
func NewOwner(p *plan.Plan, source string, force bool) Owner {
	w := Owner{Digest: p.Digest(), Source: source, Force: force, planned: map[string]bool{}}
	for _, f := range p.OutputFiles {
		w.planned[f.Path] = true
	}
	for _, f := range p.Components {
		if plan.IsSafetensors(f.Path) {
			w.planned[f.Path] = true
		}
	}
	return w
}

// A snapshot is what a folder or a branch holds at one moment.
type snapshot struct {
	where string // for errors
	// versions has every file that tells who owns the target, with a sha256, or size and time.
	versions map[string]string
	// read gives a file whole; fs.ErrNotExist if it is not there.
	read func(ctx context.Context, name string) ([]byte, error)
}

// changed lists the weight files and the journals that have another version than before.
func (s snapshot) changed(before map[string]string) (weights, journals []string) {
	for _, name := range slices.Sorted(maps.Keys(s.versions)) {
		switch changed := before[name] != s.versions[name]; {
		case changed && plan.IsSafetensors(name):
			weights = append(weights, name)
		case changed && IsJournal(name):
			journals = append(journals, name)
		}
	}
	return weights, journals
}

// An inspection is what a run found in a target when it looked at it last.
type inspection struct {
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	Claims   []string           // weight files for this run's journal to claim: the plan's, and what former plans left of theirs
	ours     map[string]bool    // weight files that this conversion, or another conversion of the source, has made
	versions map[string]string  // as in the snapshot
	stranger string             // source of somebody else's journal or manifest
}

// inspect judges a target when a run begins. Journals are read as long as some weight file is not claimed.
func (w Owner) inspect(ctx context.Context, s snapshot) (in *inspection, err error) {
	in = &inspection{ours: map[string]bool{}, versions: s.versions}
	if in.Manifest, err = readManifest(ctx, s); err != nil {
		return nil, err
	}
	w.accept(in, manifestClaim(in.Manifest))
	weights, journals := s.changed(nil)
	unclaimed := func(name string) bool { return !in.ours[name] }
	for _, name := range journals {
		if !slices.ContainsFunc(weights, unclaimed) {
			break
		}
		c, err := readJournal(ctx, s, name)
		if err != nil {
			return nil, err
		}
		w.accept(in, c)
	}
	return in, w.conclude(in, s.where, weights)
}

// recheck judges what has changed in a target since the last inspection. outputs are the sha256 of this run's outputs, by path.
func (w Owner) recheck(ctx context.Context, s snapshot, last *inspection, outputs map[string]string) (in *inspection, err error) {
	in = &inspection{Manifest: last.Manifest, ours: maps.Clone(last.ours), versions: s.versions, stranger: last.stranger}
	var claims []claim
	if s.versions[metadata.ManifestName] != last.versions[metadata.ManifestName] {
		if in.Manifest, err = readManifest(ctx, s); err != nil {
			return nil, err
		}
		claims = append(claims, manifestClaim(in.Manifest))
	}
	weights, journals := s.changed(last.versions)
	for _, name := range journals {
		c, err := readJournal(ctx, s, name)
		if err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	for _, c := range claims {
		if err := w.refuseTaken(c, s.where, outputs); err != nil {
			return nil, err
		}
		w.accept(in, c)
	}
	return in, w.conclude(in, s.where, weights)
}

// A claim is what a journal or a manifest says: a plan and its files, with their sha256 if they are made. A torn journal, or no
// manifest, claims nothing for plan "".
type claim struct {
	plan, source string
	files        map[string]string
}

// readJournal reads the claim of a journal.
func readJournal(ctx context.Context, s snapshot, name string) (c claim, err error) {
	b, err := s.read(ctx, name)
	if err == nil {
		c.plan, c.source, c.files = ledger.Claimed(b)
	}
	return c, err
}

// readManifest reads the manifest of a finished conversion; nil if there is none, or if it is broken and tells nothing.
func readManifest(ctx context.Context, s snapshot) (*metadata.Manifest, error) {
	b, err := s.read(ctx, metadata.ManifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := metadata.ParseManifest(b)
	if err != nil {
		return nil, nil //nolint:nilerr // a broken manifest says nothing about anybody's files
	}
	return m, nil
}

// manifestClaim is what a manifest says; nothing if there is none.
func manifestClaim(m *metadata.Manifest) (c claim) {
	if m == nil {
		return c
	}
	c = claim{plan: m.Plan.Digest, source: m.Source.Repo, files: map[string]string{}}
	for _, o := range m.Outputs {
		c.files[o.Path] = o.SHA256
	}
	return c
}

func (w Owner) sameSource(c claim) bool { return c.source != "" && c.source == w.Source }

// accept counts the files of a claim as ours, if it is of this plan or of its source.
func (w Owner) accept(in *inspection, c claim) {
	switch {
	case c.plan == "":
	case c.plan == w.Digest || w.sameSource(c):
		for name := range c.files {
			in.ours[name] = true
		}
	default:
		in.stranger = c.source
	}
}

// refuseTaken refuses a claim that has come while the run worked, but for this plan's with the same outputs.
func (w Owner) refuseTaken(c claim, where string, outputs map[string]string) error {
	if c.plan != "" && c.plan != w.Digest {
		return &TakenError{Where: where, Of: c.source, Same: w.sameSource(c)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if ours, theirs := outputs[name], c.files[name]; ours != "" && theirs != "" && ours != theirs {
			return &TakenError{Where: where, Of: c.source, File: name}
		}
	}
	return nil
}

// conclude lists the claims of an inspection, and refuses those of the weight files that are not this conversion's.
func (w Owner) conclude(in *inspection, where string, weights []string) error {
	claims := maps.Clone(w.planned)
	for name := range in.versions {
		if plan.IsSafetensors(name) && in.ours[name] {
			claims[name] = true
		}
	}
	in.Claims = slices.Sorted(maps.Keys(claims))
	e := &ConflictError{Where: where, Of: in.stranger}
	for _, name := range weights {
		switch {
		case in.ours[name] || w.Force:
		case w.planned[name]:
			e.Overwritten = append(e.Overwritten, name)
		default:
			e.Files = append(e.Files, name)
		}
	}
	if len(e.Files)+len(e.Overwritten) == 0 {
		return nil
	}
	return e
}

// ConflictError says that a target holds weights that this conversion has not made there. The loader reads every
// .safetensors file (docs/format.md §13), so Files would become part of the model; Overwritten have the names of outputs.
type ConflictError struct {
	Where              string
	Files, Overwritten []string
	Of                 string // the source of the conversion that is there; "" if there is none or it is not known
}

func (e *ConflictError) Error() string {
	s := fmt.Sprintf("%s holds other .safetensors files: %s", e.Where, Summary(e.Files))
	if len(e.Overwritten) > 0 {
		s = fmt.Sprintf("%s holds .safetensors files that are not of this conversion and would be overwritten: %s", e.Where, Summary(e.Overwritten))
	}
	if e.Of != "" {
		s += " (there is a conversion of " + e.Of + ")"
	}
	return s
}

// TakenError says that another run has written to a target since this run began. Its files are left as they are.
type TakenError struct {
	Where string
	Of    string // its source; "" if it is not known
	Same  bool   // it is a conversion of the same source, for another commit or with other flags
	File  string // it is the same conversion, of a source with other bytes: the first output that differs
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

// Summary names the first few of a list.
func Summary(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// Folders of journals: in a repo until the conversion is complete, and in the folder of a run.
const (
	journalDir = ".df11"
	stateDir   = metadata.StateDir
)

// IsJournal tells the journals of conversions that have not finished a target.
func IsJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == journalDir || dir == stateDir) && path.Ext(name) == ".json"
}

func journalName(part string) string { return part + ".json" }
