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

// An Owner tells whose the weight files of a target are. They are this conversion's if a journal or a manifest there says
// that this plan made them, or another plan of the same source: for another commit, or with other flags.
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
		if isWeightFile(f.Path) {
			w.names[f.Path] = true
		}
	}
	return w
}

// isWeightFile tells the files that a loader reads.
func isWeightFile(name string) bool { return strings.HasSuffix(name, ".safetensors") }

func (w Owner) is(digest, source string) bool {
	return digest == w.Digest || source != "" && source == w.Source
}

// place lists and reads what a target holds before a run.
type place interface {
	String() string
	list() ([]string, error)
	// read gives a file whole; fs.ErrNotExist if it is not there.
	read(ctx context.Context, name string) ([]byte, error)
}

// holdings is what a target holds before a run.
type holdings struct {
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	Claims   []string           // weight files that are ours, or will be
	owned    map[string]bool    // weight files that this conversion, or another one of the source, has made
}

// take finds out what a target holds, and which of its weight files are this conversion's. Weight files of others are a
// ConflictError, unless Force allows them. Every change of a target has the journal with it that claims its files, so
// journals are only read as long as there is a file that none has claimed.
func (w Owner) take(ctx context.Context, p place) (h holdings, err error) {
	names, err := p.list()
	if err != nil {
		return h, err
	}
	var found, journals []string
	for _, name := range names {
		switch {
		case isWeightFile(name):
			found = append(found, name)
		case isJournal(name):
			journals = append(journals, name)
		}
	}
	if h.Manifest, err = readManifest(ctx, p); err != nil {
		return h, err
	}
	h.owned = map[string]bool{}
	if m := h.Manifest; m != nil && w.is(m.Plan.Digest, m.Source.Repo) {
		for _, o := range m.Outputs {
			h.owned[o.Path] = true
		}
	}
	for _, j := range journals {
		if !slices.ContainsFunc(found, func(name string) bool { return !h.owned[name] }) {
			break
		}
		b, err := p.read(ctx, j)
		if err != nil {
			return h, fmt.Errorf("journal of %s: %w", p, err)
		}
		if plan, source, claimed := ledger.Claimed(b); w.is(plan, source) {
			for _, name := range claimed {
				h.owned[name] = true
			}
		}
	}
	h.Claims = w.claims(found, h.owned)
	if !w.Force {
		err = w.refuse(p, found, h)
	}
	return h, err
}

// readManifest reads the manifest of a finished conversion; nil if there is none, or if it is broken and tells nothing.
func readManifest(ctx context.Context, p place) (*metadata.Manifest, error) {
	b, err := p.read(ctx, metadata.ManifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", p, err)
	}
	m, err := metadata.ParseManifest(b)
	if err != nil {
		return nil, nil //nolint:nilerr // a broken manifest says nothing about anybody's files
	}
	return m, nil
}

// claims lists what a journal has to claim: the plan's files, and what former plans have left of theirs.
func (w Owner) claims(found []string, owned map[string]bool) []string {
	all := maps.Clone(w.names)
	for _, name := range found {
		if owned[name] {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// refuse gives an error if one of the weight files that were found is not this conversion's.
func (w Owner) refuse(p place, found []string, h holdings) error {
	e := &ConflictError{Where: p.String()}
	for _, name := range slices.Sorted(slices.Values(found)) {
		switch {
		case h.owned[name]:
		case w.names[name]:
			e.Overwritten = append(e.Overwritten, name)
		default:
			e.Files = append(e.Files, name)
		}
	}
	if len(e.Files)+len(e.Overwritten) == 0 {
		return nil
	}
	if m := h.Manifest; m != nil && !w.is(m.Plan.Digest, m.Source.Repo) {
		e.Of = m.Source.Repo
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

func isJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == journalDir || dir == stateDir) && path.Ext(name) == ".json"
}

func journalName(part string) string { return part + ".json" }
