package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Standing says whose a file is, and with that, what a run does with it:
//
//	Ours       replaced, or deleted if the result has no file of that path
//	Shared     the part of a card that's ours is replaced, the rest stays
//	Equal      stays, and isn't ours: the manifest says that it was there before
//	InTheWay   refuses the run; with Force, Given if it's there when the run begins
//	ReadAlong  refuses the run; with Force, Allowed if it's there when the run begins
//	Alike      refuses the run; with Force, Allowed if it's there when the run begins
//	Given      replaced, because Force named it; never deleted
//	Allowed    stays, and the run says that the result doesn't load until it's gone
//	LeftAlone  stays
//	Written    replaced: this run has written it since it looked last
type Standing int

// The standings. [inspector.standing] decides.
const (
	Written Standing = iota
	Ours
	Shared
	Equal
	InTheWay
	ReadAlong
	Alike
	Given
	Allowed
	LeftAlone
)

// standing decides whose a file is. A file that hasn't changed since the last inspection keeps its
// standing. The rule for any other is this table; the first line that holds decides:
//
//	a claim that counts lists it, with this content        Ours
//	it has the content that the result's file will have     Equal
//	it's a card with our part in it                         Shared, or Given
//	it's another card                                       LeftAlone, or Given
//	it has the path of a file of the result or of the run   InTheWay, or Given
//	some systems can't tell its name from such a file's     Alike, or Allowed
//	a loader would read it as weights of the result         ReadAlong, or Allowed
//	else                                                    LeftAlone
//
// In a work folder, only its journal says whose a file is, and nothing loads what lies there.
//
// Anyone who can write to a destination can forge journals and manifests there. So the rule decides
// what may be replaced, never what is right.
func (x *inspector) standing(ctx context.Context, name string) (Found, error) {
	if !x.changed(name) {
		return x.last.Files[name], nil
	}
	file, ours, err := x.ours(ctx, name)
	if err != nil || ours {
		return Found{file, Ours}, err
	}
	equal, err := x.isEqual(ctx, name)
	s, forced := LeftAlone, LeftAlone
	switch {
	case equal:
		s, forced = Equal, Equal
	case name == names.Card:
		forced = Given
		if x.begins {
			s, err = x.cardStanding(ctx)
		}
	case x.run.writes(name) || name == x.at.journal || x.at.work && inState(name):
		s, forced = InTheWay, Given
	case x.at.work:
	case x.run.alike(name) != "":
		s, forced = Alike, Allowed
	case x.run.loads(name):
		s, forced = ReadAlong, Allowed
	}
	if x.begins && x.at.force {
		s = forced
	}
	return Found{names.File{Path: name}, s}, err
}

// Found is a file of a destination. The size and the SHA-256 are those of files of ours.
type Found struct {
	names.File
	Standing
}

// An Inspection is what a run found in a destination when it looked at it. It never changes.
type Inspection struct {
	Where    string             // the destination, for people
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	Made     bool               // the manifest is of this plan and of these weights
	// the destination holds the finished result of the plan, and no other file of ours
	Current bool
	Files   map[string]Found // by path
	// Published is when a repo's newest commit was made; zero if that isn't known.
	Published time.Time

	contents contents                // of the files
	versions map[string]string       // of the files
	onHub    map[string]names.File   // the files as a Hub lists them; nil for a folder
	listed   map[string][]listed     // the files of ours that claims list, or have listed, by path
	claims   map[string]ledger.Claim // that count, by the file that makes them
	stranger string                  // names the result of a claim that doesn't
	cardPart string                  // SHA-256 of our part of the card; "" if there's none or it was edited
	marked   bool                    // the card had our part
}

// listed is a file as a claim lists it. A manifest has git's hash of small ones.
type listed struct {
	names.File
	blob string
}

// Ours lists the files that a run may replace or delete, by path.
func (in *Inspection) Ours() (files []names.File) {
	for _, f := range in.Files {
		if f.Standing == Ours {
			files = append(files, f.File)
		}
	}
	slices.SortFunc(files, func(a, b names.File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// Allowed lists the files with which the result doesn't load, on some systems at least.
func (in *Inspection) Allowed() (files []string) {
	for name, f := range in.Files {
		if f.Standing == Allowed {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// CardStays reports whether the card is someone else's, or our part of it.
func (in *Inspection) CardStays() bool { return in.Files[names.Card].Standing == LeftAlone }

// WhyCardStays says for people whose the card is that stays as it is; "" if none does.
func (in *Inspection) WhyCardStays() string {
	switch {
	case !in.CardStays():
		return ""
	case in.cardPart != "":
		return "the front matter of the card of " + in.Where + " can't be read, so the card stays as it is"
	case in.marked:
		return "our part of the card of " + in.Where + " was edited, so it stays as it is"
	}
	return "the card of " + in.Where + " is not of this program and stays as it is"
}

// Card returns the card if we may renew it, or a part of it; nil if there's none.
func (in *Inspection) Card(ctx context.Context) ([]byte, error) {
	switch in.Files[names.Card].Standing {
	case Ours, Shared:
		return in.contents.read(ctx, names.Card, maxCardBytes)
	}
	return nil, nil
}

// maxCardBytes bounds a card that a run renews. A larger one isn't ours.
const maxCardBytes = 1 << 20

// cardIsCurrent reports whether our part of a shared card is the one that the manifest lists.
func (in *Inspection) cardIsCurrent() bool {
	return in.Files[names.Card].Standing != Shared || in.cardPart != "" &&
		slices.ContainsFunc(in.Manifest.Outputs,
			func(f metadata.OutputFile) bool { return f.Part == in.cardPart })
}

// isOf reports whether the manifest is of this plan, and of a commit.
func (in *Inspection) isOf(commit string) bool {
	return in.Made && in.Manifest.Source.Commit == commit
}

// isNewer reports whether the manifest is ours, by rules that a newer version of this program has.
func (in *Inspection) isNewer() bool {
	return in.Files[names.Manifest].Standing == Ours && in.Manifest.Plan.Rules > plan.Rules
}

// Intact reports whether a destination is as the run that wrote its manifest has left it, but for a
// card of someone else's.
func (in *Inspection) Intact() bool {
	return in.Manifest != nil && !slices.ContainsFunc(in.Manifest.Outputs, in.lost)
}

// lost reports whether a file of the manifest is gone or has changed.
func (in *Inspection) lost(o metadata.OutputFile) bool {
	here := in.Files[o.Path]
	if o.Path == names.Card && (in.CardStays() || here.Standing == Shared) {
		return false
	}
	f, onHub := in.onHub[o.Path]
	return here.Standing != Ours && here.Standing != Equal || onHub && !f.MayBe(o.File())
}

// isModel reports whether a branch holds a model, by whatever program.
func (in *Inspection) isModel() bool {
	return in.Manifest != nil || in.versions[names.Config] != ""
}

// Holds reports whether a destination has a file: a Hub lists it, or what is ours in a folder was
// hashed.
func (in *Inspection) Holds(f names.File) bool {
	if in.onHub == nil {
		return f.SHA256 != "" && in.Files[f.Path] == Found{f, Ours}
	}
	return in.onHub[f.Path] == f
}

// torn reports whether a file of ours is listed with its SHA-256 but another size. KohakuHub lists
// the file of another branch, and keeps the old bytes.
func (in *Inspection) torn(name string) bool {
	now := in.onHub[name]
	return slices.ContainsFunc(in.listed[name], func(f listed) bool {
		return f.SHA256 == now.SHA256 && f.Size != now.Size && f.Size != ledger.UnknownSize
	})
}

// ManifestSHA256 is that of the manifest, if it's ours, or "".
func (in *Inspection) ManifestSHA256() string { return in.Files[names.Manifest].SHA256 }

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
	// file returns a file with its SHA-256. In a folder, that is a hash of the kind that like is, if
	// it isn't "".
	file(ctx context.Context, name, like string) (names.File, error)
	// open opens outputs that a claim lists. It keeps at most pieces bytes of a repo's in memory.
	open(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11, error)
}

// A place is what the rule depends on besides the conversion.
type place struct {
	journal string // path of the run's own journal
	work    bool   // it's a work folder
	force   bool
}

// inspect looks at what has changed in a destination since the last inspection, nil when the run
// begins. A ConflictError comes with the inspection. If another run has written to the destination
// since, the error is a TakenError: two runs that begin at the same time both find it free.
func (c *Conversion) inspect(ctx context.Context, at place, l listing,
	last *Inspection) (*Inspection, error) {
	x := &inspector{run: c, at: at, now: l, last: last, begins: last == nil,
		in: &Inspection{Where: l.where, contents: l.contents, Files: map[string]Found{}, versions: maps.Clone(l.versions),
			onHub: l.onHub, listed: map[string][]listed{}, claims: map[string]ledger.Claim{}}}
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
		return nil, &NewerError{l.where}
	}
	if len(x.conflict.Files)+len(x.conflict.Overwritten)+len(x.conflict.Alike) > 0 {
		x.conflict.Where, x.conflict.Of = l.where, x.in.stranger
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
	conflict ConflictError
}

// changed reports whether a file is another than at the last inspection.
func (x *inspector) changed(name string) bool { return x.in.versions[name] != x.last.versions[name] }

// readClaims reads the journals and the manifest that have come, and keeps what the others said.
func (x *inspector) readClaims(ctx context.Context) error {
	maps.Copy(x.in.listed, x.last.listed)
	maps.Copy(x.in.claims, x.last.claims)
	maps.DeleteFunc(x.in.claims, func(name string, _ ledger.Claim) bool { return x.changed(name) })
	x.in.stranger, x.in.cardPart, x.in.marked = x.last.stranger, x.last.cardPart, x.last.marked
	if x.in.versions[names.Manifest] != "" {
		x.in.Manifest = x.last.Manifest
		x.in.Made = x.last.Made && !x.changed(names.Manifest)
	}
	// together they take no more memory than the largest manifest
	left, nRead := metadata.MaxManifestBytes(x.run.Memory), 0
	for _, name := range slices.Sorted(maps.Keys(x.in.versions)) {
		if name != names.Manifest && !IsJournal(name) || !x.changed(name) {
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

// readClaim reads a journal or a manifest, and decides whether it counts. A broken one says nothing,
// but one that the memory budget is too small for may say something.
func (x *inspector) readClaim(ctx context.Context, name string, b []byte) error {
	var claim ledger.Claim
	if err := metadata.Fits(b, x.run.Memory); err != nil {
		return fmt.Errorf("%s: %s: %w", x.now.where, name, err)
	}
	if IsJournal(name) {
		claim = ledger.ReadJournal(b)
	} else if x.in.Manifest, _ = metadata.ParseManifest(b, 0); x.in.Manifest != nil {
		claim = ledger.OfManifest(x.in.Manifest)
	}
	claim, err := x.run.translate(ctx, claim)
	if err != nil {
		return err
	}
	by, err := x.run.author(ctx, claim, x.now.contents)
	if err != nil {
		return err
	}
	switch {
	case by == unknown || x.at.work && claim.Keeps:
		return nil
	case by != same && !x.begins:
		return x.taken(by, claim)
	case by == stranger:
		x.in.stranger = claim.Result.Unlike(x.run.identity)
		return nil
	}
	x.in.Files[name] = Found{names.File{Path: name, Size: int64(len(b)), SHA256: sumOf(b)}, Ours}
	x.list(claim)
	if name == names.Manifest {
		x.in.Made = by == same
		for _, f := range x.in.Manifest.Outputs {
			if f.Blob != "" && !f.Kept {
				x.in.listed[f.Path] = append(slices.Clip(x.in.listed[f.Path]), listed{f.File(), f.Blob})
			}
		}
	}
	// the digests of a local source's outputs cover only samples, which are compared with nothing
	if by >= equal || !x.run.From.Local {
		x.in.claims[name] = claim
	}
	return nil
}

// list adds the files that a claim lists.
func (x *inspector) list(claim ledger.Claim) {
	files := claim.Others
	for _, o := range claim.Outputs {
		files = append(slices.Clip(files), o.File(), o.There())
	}
	for _, f := range files {
		x.in.listed[f.Path] = append(slices.Clip(x.in.listed[f.Path]), listed{File: f})
	}
}

// taken says that a run of another plan has written a claim since this run looked last.
func (x *inspector) taken(by author, claim ledger.Claim) error {
	if by == stranger {
		return &TakenError{x.now.where, claim.Result.Unlike(x.run.identity)}
	}
	return &TakenError{x.now.where, claim.Result.Source + " at another commit or with other flags"}
}

// findListed adds the files that claims list to the versions.
func (x *inspector) findListed(context.Context) error {
	for name := range x.in.listed {
		version, err := x.now.contents.version(name)
		if err != nil {
			return err
		}
		if version != "" {
			x.in.versions[name] = version
		}
	}
	return nil
}

// judge finds out whose each file is, and which of those that changed may not stay as they are.
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
	return nil
}

// ours reports whether a claim that counts lists a file as it is, by its SHA-256 or by git's hash.
func (x *inspector) ours(ctx context.Context, name string) (names.File, bool, error) {
	if f := x.in.Files[name]; f.Standing == Ours { // its claim counts
		return f.File, true, nil
	}
	list, version := x.in.listed[name], x.in.versions[name]
	if len(list) == 0 {
		return names.File{}, false, nil
	}
	at := slices.IndexFunc(list, func(f listed) bool { return f.blob != "" && f.blob == version })
	if at >= 0 {
		return list[at].File, true, nil
	}
	file, err := x.now.contents.file(ctx, name, "")
	return file, err == nil && slices.ContainsFunc(list,
		func(f listed) bool { return f.SHA256 == file.SHA256 }), err
}

// isEqual reports whether a file has the content that the result's file will have.
func (x *inspector) isEqual(ctx context.Context, name string) (bool, error) {
	pin, written := x.run.files[name]
	if !written || name == names.Card || x.at.work {
		return false, nil
	}
	if pin == "" && x.run.From.Content != nil {
		var err error
		if pin, err = x.run.From.Content(ctx, name); err != nil {
			return false, err
		}
	}
	if pin == "" || pin == x.in.versions[name] {
		return pin != "", nil
	}
	file, err := x.now.contents.file(ctx, name, pin)
	return file.SHA256 == pin, err
}

// cardStanding decides about a card that isn't ours as a whole. The marks must be there, and around
// what we wrote.
func (x *inspector) cardStanding(ctx context.Context) (Standing, error) {
	if x.now.contents.size(names.Card) > maxCardBytes {
		return LeftAlone, nil
	}
	card, err := x.now.contents.read(ctx, names.Card, maxCardBytes)
	if err != nil {
		return LeftAlone, err
	}
	x.in.cardPart, x.in.marked = metadata.CardPart(card), metadata.HasMark(card)
	if metadata.UpdateCard(card, card) == nil {
		return LeftAlone, nil
	}
	return Shared, nil
}

// IsJournal reports whether a file is the journal of a conversion that hasn't finished its
// destination.
func IsJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == names.JournalDir || dir == names.StateDir) && path.Ext(name) == ".json"
}

// journalName is the name of a part's journal in its folder.
func journalName(part string) string { return part + ".json" }
