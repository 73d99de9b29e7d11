package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A listing is what a folder or a commit holds.
type listing struct {
	where    string                // for errors
	versions map[string]string     // by path. Two versions differ if the contents do
	onHub    map[string]names.File // the files as a Hub lists them; nil for a folder
	contents contents
}

// contents are what the files of a listing hold.
type contents interface {
	// version returns the version of a file that a claim lists; "" if it isn't there.
	version(name string) (string, error)
	size(name string) int64 // less than 1 if it isn't known
	// read returns a file of at most limit bytes.
	read(ctx context.Context, name string, limit int64) ([]byte, error)
	// file returns a file with its SHA-256.
	file(ctx context.Context, name string) (names.File, error)
	// has reports whether a file has a hash, a SHA-256 or git's.
	has(ctx context.Context, name, hash string) (bool, error)
	// open opens outputs that a claim lists. It keeps at most pieces bytes of a repo's in memory.
	open(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11, error)
	// isResult reports whether a .safetensors file is weights of a DF11 model, by its tensors, or
	// by the name that a library looks for or that only conversions give.
	isResult(name string) bool
}

// A place describes a destination, as far as the rule depends on it.
type place struct {
	journal string // path of the run's own journal
	work    bool   // it's a work folder
	folder  bool   // it's a folder of the user's, which has no history: what is removed there is lost
	force   bool
}

// inspect looks at what has changed in a destination since the last inspection, nil when the run
// begins. A ConflictError comes with the inspection. If another run has written to the destination
// since, the error is a TakenError: two runs that begin at the same time both find it free.
func (c *Conversion) inspect(ctx context.Context, at place, l listing,
	last *Inspection) (*Inspection, error) {
	x := &inspector{run: c, at: at, now: l, last: last, begins: last == nil,
		in: &Inspection{Where: l.where, contents: l.contents, Files: map[string]Found{},
			versions: maps.Clone(l.versions), onHub: l.onHub,
			listed: map[string][]listed{}, claims: map[string]ledger.Claim{}},
		replaced: map[string][]listed{}}
	if x.begins {
		x.last = &Inspection{}
	}
	for _, step := range []func(context.Context) error{x.readClaims, x.findListed, x.judge} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	x.in.Current = x.in.isOf(c.From.Commit) && x.in.Manifest.Plan.Rules >= plan.Rules &&
		x.in.Intact() && x.in.cardIsCurrent() && !slices.ContainsFunc(x.in.Ours(),
		func(f names.File) bool { return !c.writes(f.Path) })
	if x.begins && !at.force && x.in.isNewer() && !x.in.Current {
		return nil, &NewerError{Where: l.where}
	}
	if len(x.conflict.Files)+len(x.conflict.Overwritten)+len(x.conflict.Alike) > 0 {
		x.conflict.Where, x.conflict.Of = l.where, x.in.stranger
		x.conflict.Edited = !slices.ContainsFunc(x.conflict.Overwritten,
			func(name string) bool { return len(x.in.listed[name]) == 0 })
		return x.in, &x.conflict
	}
	return x.in, nil
}

// An inspector makes an inspection.
type inspector struct {
	run      *Conversion
	at       place
	now      listing
	begins   bool
	last     *Inspection // an empty one when the run begins
	in       *Inspection
	replaced map[string][]listed // what else Force would count as ours, by path
	conflict ConflictError
}

// changed reports whether a file has changed since the last inspection.
func (x *inspector) changed(name string) bool { return x.in.versions[name] != x.last.versions[name] }

// readClaims reads the journals and the manifest that are new, and keeps what it knows of the
// others.
func (x *inspector) readClaims(ctx context.Context) error {
	maps.Copy(x.in.listed, x.last.listed)
	maps.Copy(x.in.claims, x.last.claims)
	maps.DeleteFunc(x.in.claims, func(name string, _ ledger.Claim) bool { return x.changed(name) })
	x.in.stranger, x.in.card = x.last.stranger, x.last.card
	if x.in.versions[names.Manifest] != "" {
		x.in.Manifest = x.last.Manifest
		x.in.ByPlan = x.last.ByPlan && !x.changed(names.Manifest)
	}
	// together they take no more memory than the largest manifest
	left, nRead := metadata.MaxManifestBytes(x.run.Memory), 0
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		if name != names.Manifest && !names.IsJournal(name) || !x.changed(name) {
			continue
		}
		size := x.now.contents.size(name)
		if nRead++; size > left || nRead > 1+spans.MaxParts {
			return fmt.Errorf("%s: %w", x.now.where, &model.MemoryError{File: name, Size: size, Most: left})
		}
		b, err := x.now.contents.read(ctx, name, left)
		if left -= int64(len(b)); err == nil {
			err = x.readClaim(ctx, name, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readClaim reads a journal or a manifest, and notes the files that are ours because of it.
func (x *inspector) readClaim(ctx context.Context, name string, b []byte) error {
	claim, err := x.parseClaim(name, b)
	if err != nil {
		return err
	}
	if claim, err = x.run.translate(ctx, claim); err != nil {
		return err
	}
	by, err := x.run.author(ctx, claim, x.now.contents)
	if err != nil {
		return err
	}
	v := x.effect(name, by, claim)
	if by == stranger && v != ended {
		x.in.stranger = claim.Result.Unlike(x.run.identity)
		x.conflict.Retrained = claim.Result.Source == "" && x.run.identity.Source == "" &&
			!claim.Result.Contradicts(x.run.identity)
	}
	switch v {
	case taken:
		return x.taken(by, claim)
	case replaceable:
		x.list(x.replaced, name, claim)
	case ended, counts:
		x.in.Files[name] = Found{names.File{Path: name, Size: int64(len(b)), SHA256: sumOf(b)}, Ours}
		x.list(x.in.listed, name, claim)
		if name == names.Manifest {
			x.in.ByPlan = by == samePlan
		}
		// the digests of a local source's outputs cover only samples, which are compared with
		// nothing
		if by >= sameWeights || by == otherWeights && !x.run.From.Local {
			x.in.claims[name] = claim
		}
	}
	return nil
}

// parseClaim parses a journal or a manifest. A broken one claims nothing. One that's too large for
// the memory budget might claim something, so it's an error. So is one in a newer form, unless
// Force replaces it.
func (x *inspector) parseClaim(name string, b []byte) (claim ledger.Claim, err error) {
	if err := metadata.Fits(b, x.run.Memory); err != nil {
		return claim, fmt.Errorf("%s: %s: %w", x.now.where, name, err)
	}
	newer := false
	if names.IsJournal(name) {
		claim = ledger.ReadJournal(b)
		newer = claim.Newer
	} else {
		x.in.Manifest, err = metadata.ParseManifest(b, 0)
		if _, newer = errors.AsType[*metadata.NewerError](err); x.in.Manifest != nil {
			claim = ledger.OfManifest(x.in.Manifest)
		}
	}
	if newer && (!x.at.force || !x.begins) {
		return claim, &NewerError{x.now.where, name}
	}
	return claim, nil
}

// An effect is what a claim means for a run.
type effect int

const (
	ignored     effect = iota // it says nothing about whose the files are
	taken                     // another run has made it since this one looked last
	replaceable               // it's of another result, which Force replaces
	ended                     // it's of a run that has made nothing of another result
	counts                    // the files that it lists are ours
)

// effect decides what a claim means for the run.
func (x *inspector) effect(name string, by author, claim ledger.Claim) effect {
	isOver := inState(name) && x.now.onHub == nil // no run goes on, because the folder is locked
	switch {
	case by == unknown || x.at.work && claim.Keeps:
		return ignored
	case by != samePlan && !x.begins:
		return taken
	case by != stranger:
		return counts
	case isOver && len(claim.Outputs)+len(claim.Others) == 0:
		return ended
	case name != names.Manifest && !isOver || x.at.work:
		return ignored
	case !x.at.force:
		return replaceable
	}
	return counts
}

// list adds the files that a claim (a journal or the manifest) lists.
func (x *inspector) list(to map[string][]listed, name string, claim ledger.Claim) {
	add := func(f listed) {
		f.commit = claim.Commit
		to[f.Path] = append(slices.Clip(to[f.Path]), f)
	}
	for _, f := range claim.Others {
		add(listed{File: f})
	}
	for _, o := range claim.Outputs {
		add(listed{File: o.File()})
		add(listed{File: o.Stored()})
	}
	if name != names.Manifest {
		return
	}
	for _, f := range x.in.Manifest.Outputs {
		if f.Blob != "" && !f.Kept {
			add(listed{File: f.File(), blob: f.Blob})
		}
	}
}

// taken says that a run of another plan has written a claim since this run looked last.
func (x *inspector) taken(by author, claim ledger.Claim) error {
	if by == stranger {
		return &TakenError{x.now.where, claim.Result.Unlike(x.run.identity)}
	}
	return &TakenError{x.now.where, claim.Result.Source + " at another commit or with other flags"}
}

// findListed adds the files that claims list to the versions. A folder may know a file of the
// result by a second name that a claim lists, such as one in other letter case. It's no file of its
// own, so the run doesn't remove it.
func (x *inspector) findListed(context.Context) error {
	result := map[string]bool{} // versions of its files, which differ by file in a folder
	for name, version := range x.in.versions {
		if x.now.onHub == nil && x.run.writes(name) {
			result[version] = true
		}
	}
	for name := range x.in.listed {
		version, err := x.now.contents.version(name)
		if err != nil {
			return err
		}
		if version != "" && (x.run.writes(name) || !result[version]) {
			x.in.versions[name] = version
		}
	}
	return nil
}

// judge decides about each file. Files that changed and are in the way become the conflict.
func (x *inspector) judge(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		found, err := x.standing(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", x.now.where, err)
		}
		x.in.Files[name] = found
		switch {
		case !x.changed(name):
		case found.Standing == InTheWay:
			x.conflict.Overwritten = append(x.conflict.Overwritten, name)
		case found.Standing == Alike:
			x.conflict.Alike = append(x.conflict.Alike, name)
		case found.Standing == ReadAlong:
			x.conflict.Files = append(x.conflict.Files, name)
		}
	}
	if err := x.findRemoved(ctx); err != nil {
		return fmt.Errorf("%s: %w", x.now.where, err)
	}
	for _, name := range slices.Concat(x.conflict.Alike, x.conflict.Files) {
		if !slices.Contains(x.conflict.Removed, name) {
			x.conflict.Stay = append(x.conflict.Stay, name)
		}
	}
	return nil
}

// findRemoved adds to the conflict what a run with Force would remove. In a folder, it hashes each
// of these files.
func (x *inspector) findRemoved(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(x.replaced)) {
		version, err := x.now.contents.version(name)
		if err == nil && version != "" && !x.run.writes(name) {
			var goes bool
			if _, goes, err = x.isListed(ctx, name, x.replaced[name]); goes {
				x.conflict.Removed = append(x.conflict.Removed, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// journalName is the name of a part's journal in its folder.
func journalName(part string) string { return part + ".json" }
