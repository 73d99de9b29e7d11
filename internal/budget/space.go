package budget

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A Space is the disk of a run's folder: what there is, and what the run may take of it.
type Space struct {
	Folder string
	// Free bytes, with what earlier runs left for this one; -1 if the system doesn't say.
	Free int64
	// Stays is how many of them the result will keep. No limit applies to those.
	Stays int64
	// Limit bounds everything that doesn't stay; 0 is no limit.
	Limit int64
}

// reserve is what outputs leave free for other programs, as far as they can. It's no budget:
// nothing is refused because of it.
const reserve = 256 << 20

// Check returns a *DiskError if so many bytes at once, next to those that stay, are too many.
func (s Space) Check(need int64) error {
	if s.Free >= 0 && s.Stays+need > s.Free {
		return &DiskError{Need: s.Stays + need, Have: s.Free, Folder: s.Folder, Result: s.Stays}
	}
	if s.Limit > 0 && need > s.Limit {
		return &DiskError{Need: need, Have: s.Limit}
	}
	return nil
}

// ForOutputs returns how much of the disk spools and files that wait for an upload may take, if
// they need least of it. 0 means no limit.
func (s Space) ForOutputs(least int64) int64 {
	if s.Limit > 0 || s.Free < 0 {
		return s.Limit
	}
	return max(1, least, s.Free-s.Stays-reserve)
}

// ForCopies returns how many bytes copied files that don't stay may take at once. 0 means no limit.
func (s Space) ForCopies() int64 {
	if s.Limit > 0 || s.Free < 0 {
		return s.Limit
	}
	return max(1, s.Free-s.Stays)
}

// DiskError reports that a conversion doesn't fit on the disk, and the smallest budget that it
// needs.
type DiskError struct {
	Need, Have int64
	Folder     string // on the disk with Have bytes free; "" if Have is a budget
	Result     int64  // part of Need: what stays in the folder
}

func (e *DiskError) Error() string {
	if e.Folder != "" {
		parts := ""
		if temporary := e.Need - e.Result; e.Result > 0 && temporary > 0 {
			parts = fmt.Sprintf(" (%s result, %s temporary)", human.Bytes(e.Result),
				human.Bytes(temporary))
		}
		return fmt.Sprintf("%s: %s free, at least %s needed%s: %s missing", e.Folder,
			human.Bytes(e.Have), human.BytesUp(e.Need), parts, human.BytesUp(e.Need-e.Have))
	}
	return fmt.Sprintf("%s of disk is too little: at least %s are needed", human.Bytes(e.Have),
		human.BytesUp(e.Need))
}
