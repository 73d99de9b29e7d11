package publish

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A Standing says whose a file is, and with that, what a run does with it:
//
//	Ours       replaced, or deleted if the result has no file of that path
//	Shared     the part of a card that's ours is replaced, the rest stays
//	Equal      stays, and isn't ours: the manifest says that it was there before
//	InTheWay   refuses the run; with Force, Given if it's there when the run begins
//	ReadAlong  refuses the run, also with Force, because loaders would read it too
//	Alike      refuses the run, also with Force, because not every system can hold both
//	Given      replaced, because Force named it; never deleted
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
	LeftAlone
)

// standing decides whose a file is. A file that hasn't changed since the last inspection keeps its
// standing. The rule for any other is this table; the first line that holds decides:
//
//	a claim that counts lists it, with this content        Ours, unless [inspector.writable] says no
//	it has the content that the result's file will have     Equal
//	it's a card with our part in it                         Shared, or Given
//	it's another card                                       LeftAlone, or Given
//	it has the path of a file of the result or of the run   InTheWay, or Given
//	some systems can't tell its name from such a file's     Alike
//	a loader would read it as weights of the result         ReadAlong
//	else                                                    LeftAlone
//
// A claim counts if it's of the same result, or a folder's journal that lists nothing. With Force, the
// manifest of any other result counts, too, and in a folder the journal, when the run begins: the run
// replaces that result.
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
		s, forced = Alike, Alike
	case x.run.loads(name):
		s, forced = ReadAlong, ReadAlong
	}
	if x.begins && x.at.force {
		s = forced
	}
	return Found{names.File{Path: name}, s}, err
}

// ours reports whether a claim that counts lists a file as it is.
func (x *inspector) ours(ctx context.Context, name string) (names.File, bool, error) {
	if f := x.in.Files[name]; f.Standing == Ours { // its claim counts
		return f.File, true, nil
	}
	return x.isListed(ctx, name, x.in.listed[name])
}

// isListed reports whether a list has a file as it is, by its SHA-256 or by git's hash. In a folder, a
// list counts only for files that a conversion writes.
func (x *inspector) isListed(ctx context.Context, name string,
	list []listed) (names.File, bool, error) {
	version := x.in.versions[name]
	if len(list) > 0 && x.at.folder && !x.run.writes(name) {
		var err error
		if list, err = x.writable(ctx, name, list); err != nil {
			return names.File{}, false, err
		}
	}
	if len(list) == 0 {
		return names.File{}, false, nil
	}
	at := slices.IndexFunc(list, func(f listed) bool { return f.blob != "" && f.blob == version })
	if at >= 0 {
		return list[at].File, true, nil
	}
	file, err := x.now.contents.file(ctx, name) // a folder and a link have no SHA-256
	return file, err == nil && file.SHA256 != "" && slices.ContainsFunc(list,
		func(f listed) bool { return f.SHA256 == file.SHA256 }), err
}

// writable returns the files of a list that a conversion may have written: weights of a DF11 model,
// what their readers open next to them, copies of files that the source had at the listed commit
// and, for a local source, license terms. A list may be forged, and a folder keeps nothing that is
// removed.
func (x *inspector) writable(ctx context.Context, name string, list []listed) (made []listed, err error) {
	base := strings.ToLower(path.Base(name))
	switch {
	case reader.IsSafetensors(name):
		if x.now.contents.isResult(name) {
			made = list
		}
		return made, nil
	case base == names.Chart, isRemainder(name), reader.IsOpened(base), reader.IsLoaded(name) && path.Ext(base) == ".json":
		return list, nil
	case x.run.From.Local: // no Hub knows what the source had
		if reader.IsNotice(name) {
			made = list
		}
		return made, nil
	}
	for _, f := range list {
		pin, err := x.run.From.Source.HashAt(ctx, f.commit, name)
		if err != nil {
			return nil, err
		}
		if pin == "" {
			continue
		}
		had, err := x.now.contents.has(ctx, name, pin)
		if err != nil {
			return nil, err
		}
		if had {
			made = append(made, f)
		}
	}
	return made, nil
}

// isRemainder reports whether a path is that of the tensors of no unit, or of their index, which no
// other program writes under that name.
func isRemainder(name string) bool {
	stem, isWeights := strings.CutSuffix(strings.TrimSuffix(path.Base(name), ".index.json"), ".safetensors")
	return isWeights && reader.HasStem(stem, names.Remainder)
}

// isEqual reports whether a file has the content that the result's file will have.
func (x *inspector) isEqual(ctx context.Context, name string) (bool, error) {
	pin, written := x.run.files[name]
	if !written || name == names.Card || x.at.work {
		return false, nil
	}
	if pin == "" {
		var err error
		if pin, err = x.run.From.Source.Sum(ctx, name); err != nil {
			return false, err
		}
	}
	if pin == "" || pin == x.in.versions[name] {
		return pin != "", nil
	}
	return x.now.contents.has(ctx, name, pin)
}
