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

// An Owner tells whose a target is. It is this conversion's if a journal or a manifest there says so of every weight file.
type Owner struct {
	Digest string          // of the plan
	Source string          // Hub repo that the weights come from; "" if it is not known
	Force  bool            // weights of others may stay, and be overwritten
	names  map[string]bool // weight files of the plan
}

// NewOwner is the owner of what a plan makes of a source.
func NewOwner(p *plan.Plan, source string, force bool) Owner {
	w := Owner{Digest: p.Digest(), Source: source, Force: force, names: map[string]bool{}}
	for _, f := range p.OutputFiles {
		w.names[f.Path] = true
	}
	for _, f := range p.Components {
		if plan.IsSafetensors(f.Path) {
			w.names[f.Path] = true
		}
	}
	return w
}

// place lists and reads what a target holds at one moment.
type place interface {
	String() string
	// list names what decides whose the target is, with a word for each file that is another one once the file has changed.
	list() (map[string]string, error)
	// read gives a file whole; fs.ErrNotExist if it is not there.
	read(ctx context.Context, name string) ([]byte, error)
}

// holdings is what a target held when the run looked at it last.
type holdings struct {
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	Claims   []string           // weight files that are ours, or will be
	owned    map[string]bool    // weight files that this conversion, or another one of the source, has made
	files    map[string]string  // as the place lists them
	other    string             // source of somebody else's journal or manifest
}

// A claim is what a journal or a manifest says: files of a plan, with their sha256 if they are made.
type claim struct {
	plan, source string
	files        map[string]string
}

// look finds out what a target holds, and refuses it if it is not this conversion's. A run looks when it begins and again
// before every commit on a target that others have changed, since two runs that begin at the same time both find it free:
//
//   - When it begins (before is nil), every weight file has to be claimed by this plan, or by another one of the same
//     source: for another commit, or with other flags. Anything else is a ConflictError, unless Force allows it.
//   - Later, before is what the last look has found, and what is still the same is not judged again. A journal or a manifest
//     of any other plan has come meanwhile, and so has one of this plan that names other bytes than made, this run's own
//     outputs: a TakenError. Weight files that nobody claims are a ConflictError as before.
//
// Every change of a target has the journal with it that claims its files, so at the beginning journals are only read as long
// as there is a file that none has claimed.
func (w Owner) look(ctx context.Context, p place, before *holdings, made map[string]string) (*holdings, error) {
	files, err := p.list()
	if err != nil {
		return nil, err
	}
	began := before == nil
	if began {
		before = &holdings{}
	}
	h := &holdings{Manifest: before.Manifest, other: before.other, owned: map[string]bool{}, files: files}
	maps.Copy(h.owned, before.owned)
	var weights, journals []string // that have changed
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch changed := before.files[name] != files[name]; {
		case changed && plan.IsSafetensors(name):
			weights = append(weights, name)
		case changed && IsJournal(name):
			journals = append(journals, name)
		}
	}
	if before.files[metadata.ManifestName] != files[metadata.ManifestName] {
		if h.Manifest, err = readManifest(ctx, p); err != nil {
			return nil, err
		}
		if err := w.judge(h, p, claimOf(h.Manifest), began, made); err != nil {
			return nil, err
		}
	}
	unclaimed := func(name string) bool { return !h.owned[name] }
	for _, name := range journals {
		if began && !slices.ContainsFunc(weights, unclaimed) {
			break
		}
		b, err := p.read(ctx, name)
		if err != nil {
			return nil, err
		}
		var c claim
		c.plan, c.source, c.files = ledger.Claimed(b)
		if err := w.judge(h, p, c, began, made); err != nil {
			return nil, err
		}
	}
	h.Claims = w.claims(h)
	return h, w.refuse(p, weights, h)
}

// judge takes over what a journal or a manifest claims, if it is this conversion's, and tells when it is not.
func (w Owner) judge(h *holdings, p place, c claim, began bool, made map[string]string) error {
	same := c.source != "" && c.source == w.Source
	switch {
	case c.plan == "": // none, or a torn one
		return nil
	case c.plan == w.Digest:
		for _, name := range slices.Sorted(maps.Keys(made)) {
			if ours, theirs := made[name], c.files[name]; ours != "" && theirs != "" && ours != theirs {
				return &TakenError{Where: p.String(), Of: c.source, File: name}
			}
		}
	case !began:
		return &TakenError{Where: p.String(), Of: c.source, Same: same}
	case !same:
		h.other = c.source
		return nil
	}
	for name := range c.files {
		h.owned[name] = true
	}
	return nil
}

// claimOf is what a manifest says; nothing if there is none.
func claimOf(m *metadata.Manifest) (c claim) {
	if m == nil {
		return c
	}
	c = claim{plan: m.Plan.Digest, source: m.Source.Repo, files: map[string]string{}}
	for _, o := range m.Outputs {
		c.files[o.Path] = o.SHA256
	}
	return c
}

// readManifest reads the manifest of a finished conversion; nil if there is none, or if it is broken and tells nothing.
func readManifest(ctx context.Context, p place) (*metadata.Manifest, error) {
	b, err := p.read(ctx, metadata.ManifestName)
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

// claims lists what a journal has to claim: the plan's files, and what former plans have left of theirs.
func (w Owner) claims(h *holdings) []string {
	all := maps.Clone(w.names)
	for name := range h.files {
		if plan.IsSafetensors(name) && h.owned[name] {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// refuse gives an error if one of these weight files is not this conversion's.
func (w Owner) refuse(p place, weights []string, h *holdings) error {
	e := &ConflictError{Where: p.String(), Of: h.other}
	for _, name := range weights {
		switch {
		case h.owned[name] || w.Force:
		case w.names[name]:
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
// .safetensors file it finds (docs/format.md §13), so Files would end up in the model; Overwritten have the names of
// outputs.
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

// TakenError says that another run has written to a target since this one began. What it put there is left as it is.
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

// SourceTargetError says that the result would take the place of its source.
type SourceTargetError struct{ Target string }

func (e *SourceTargetError) Error() string {
	return fmt.Sprintf("%s is the source's own: its files would be replaced", e.Target)
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
