package publish

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
)

// A ConflictError reports files in a destination that aren't ours. Overwritten have names of the
// result's files. Alike have names that some systems can't tell from those. Files are weights that
// a loader would read along with the result (docs/format.md §13). Stay are those of Alike and Files
// that stay even with Force.
type ConflictError struct {
	Where                           string
	Files, Overwritten, Alike, Stay []string
	// files of the result that is there, which a run with Force would remove
	Removed []string
	// the source of the conversion in the destination; "" if there is none or it isn't known
	Of string
	// Edited says that all of Overwritten are files that a run wrote for this result, and that have
	// changed since. Retrained says that both results are of a folder or file, alike but for the
	// weights.
	Edited, Retrained bool
}

// Hint says what can be done about files that Force doesn't replace, and what about those that it does
// and that are the user's own work.
func (e *ConflictError) Hint() hint.Hint {
	switch {
	case len(e.Stay) > 0:
		return hint.Stays
	case e.Retrained:
		return hint.Retrained
	case e.Edited && len(e.Alike)+len(e.Files) == 0:
		return hint.Edited
	}
	return hint.Hint{}
}

func (e *ConflictError) Error() string {
	files, alike := e.Files, e.Alike
	if len(e.Stay) > 0 {
		files, alike = e.staying(files), e.staying(alike)
	}
	s := fmt.Sprintf("%s holds other .safetensors files: %s", e.Where, human.List(files))
	if len(alike) > 0 {
		s = fmt.Sprintf("%s holds files whose names some systems can't tell from the result's: %s",
			e.Where, human.List(alike))
	}
	if len(e.Overwritten) > 0 && len(e.Stay) == 0 {
		whose := "are not of this conversion"
		if e.Edited {
			whose = "changed since a run wrote them"
		}
		s = fmt.Sprintf("%s holds files that %s and would be overwritten: %s", e.Where, whose,
			human.List(e.Overwritten))
	}
	if e.Of != "" {
		s += " (there is a conversion of " + e.Of + ")"
	}
	if len(e.Removed) > 0 && len(e.Stay) == 0 {
		s += "; --force would remove " + strings.Join(e.Removed, ", ")
	}
	return s
}

// staying returns those of the files that Force doesn't replace.
func (e *ConflictError) staying(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files),
		func(name string) bool { return !slices.Contains(e.Stay, name) })
}

// A NewerError says that a newer version of this program made what a destination holds, by other
// rules or in a form that this version can't read. This version would undo the newer one's work,
// and the newer one would redo it.
type NewerError struct {
	Where  string
	Unread string // the manifest or journal whose form is newer; "" if only the rules are
}

func (e *NewerError) Error() string {
	if e.Unread != "" {
		return fmt.Sprintf("%s holds a result of a newer version of df11-convert: this one can't read "+
			"its %s", e.Where, e.Unread)
	}
	return e.Where + " holds a result of a newer version of df11-convert, which this one would turn back"
}

// A TakenError says that another run has written to a destination since this run began. Its files
// are left as they are.
type TakenError struct {
	Where string
	Of    string // its source; "" if it isn't known
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("since this run began, a conversion of %s has written to %s",
		cmp.Or(e.Of, "another model"), e.Where)
}

// A LostError says that a branch doesn't hold what this run has just published there: files of it
// differ, are gone, or came back.
type LostError struct {
	Where, Branch string
	Files         []string
	why           error // who it was; nil if that isn't known
}

// Hint says what can be done about it.
func (e *LostError) Hint() hint.Hint { return hint.Lost.With("target", e.Where) }

func (e *LostError) Error() string {
	s := fmt.Sprintf("%s of %s does not hold what was published: %s", e.Branch, e.Where,
		human.List(e.Files))
	if e.why != nil {
		s += " (" + e.why.Error() + ")"
	}
	return s
}

// An UnreadError says that another client couldn't read back what was published. It says nothing
// about what is there.
type UnreadError struct{ error }

func (e *UnreadError) Unwrap() error { return e.error }

// A LostFileError says that a folder doesn't hold a file any more that this run has made or found
// there.
type LostFileError struct{ Path string }

func (e *LostFileError) Error() string {
	return e.Path + " was removed or changed while the conversion ran: run the same command again"
}

// ErrBranchGone says that the branch of an update was removed, by a faster run or by a person.
var ErrBranchGone = errors.New("the branch that prepares the update was removed")
