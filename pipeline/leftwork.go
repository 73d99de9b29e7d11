package pipeline

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// targetsWork matches the names that workDir gives to the folders of a target: the target, and the
// beginning of the plan's digest.
var targetsWork = regexp.MustCompile(`^(.+--.+)-([0-9a-f]{16})(?:-.+)?$`)

// sayOtherWork names the work folders that runs with other plans left for the same target, and
// their size. A killed run leaves its folder, and once the source or the options change, no run
// opens it again. It removes none, because a run for another branch may still need it.
func (s *session) sayOtherWork(o *Options, own string) {
	mine := targetsWork.FindStringSubmatch(filepath.Base(own))
	if mine == nil || o.WorkDir != "" && !o.SharedWorkDir { // the caller's own folder, whatever its name
		return
	}
	in := filepath.Dir(own)
	entries, err := os.ReadDir(in)
	if err != nil {
		return // there's no folder of work yet
	}
	var others []string
	var size int64
	for _, e := range entries {
		its := targetsWork.FindStringSubmatch(e.Name())
		if its == nil || its[1] != mine[1] || its[2] == mine[2] || !e.IsDir() {
			continue
		}
		others = append(others, e.Name())
		size += sizeOf(filepath.Join(in, e.Name()))
	}
	if len(others) > 0 {
		s.say("earlier runs for %s, with other weights or options, left %s in %s: %s; delete what no run "+
			"of yours still needs", strings.Replace(mine[1], "--", "/", 1), human.Bytes(size), in,
			human.List(others))
	}
}

// sizeOf returns the bytes of the files in a folder, as far as they can be seen.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // the rest still counts
		}
		if st, err := e.Info(); err == nil {
			n += st.Size()
		}
		return nil
	})
	return n
}
