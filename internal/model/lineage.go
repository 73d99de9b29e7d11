package model

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A Lineage is the Hub repo and commit that a local source was downloaded from, by
// huggingface_hub's paths and notes. Either may be "".
type Lineage struct{ Repo, Commit string }

// cacheLineage returns the lineage of a path in the shared cache:
// models--org--name/snapshots/COMMIT, or below.
func cacheLineage(folder string) (l Lineage, ok bool) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		snapshots := filepath.Dir(dir)
		repo, cached := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), "models--")
		if cached && filepath.Base(snapshots) == "snapshots" &&
			names.IsCommit(filepath.Base(dir)) {
			l = Lineage{strings.Replace(repo, "--", "/", 1), filepath.Base(dir)}
			return l, names.CheckNewRepo(l.Repo) == nil
		}
		if snapshots == dir {
			return Lineage{}, false
		}
	}
}

// downloadedCommit returns the one commit that all files were downloaded from, by the notes that
// "hf download --local-dir" leaves. It returns "" if a note is missing, or a file is newer than its
// note.
func downloadedCommit(folder string, files []plan.File) (commit string) {
	for _, f := range files {
		name := filepath.FromSlash(f.Path)
		b, err := disk.Read(filepath.Join(folder, ".cache", "huggingface", "download",
			name+".metadata"), 4<<10)
		lines := strings.Split(string(b), "\n") // commit, etag, seconds since 1970
		if err != nil || len(lines) < 3 || !names.IsCommit(lines[0]) || commit != "" &&
			lines[0] != commit {
			return ""
		}
		noted, err := time.ParseDuration(strings.TrimSpace(lines[2]) + "s")
		st, missing := os.Stat(filepath.Join(folder, name))
		if err != nil || missing != nil ||
			st.ModTime().After(time.Unix(0, 0).Add(noted+time.Second)) {
			return ""
		}
		commit = lines[0]
	}
	return commit
}

// traceCache finds the lineage of a local source by its path, or by the path that its links lead to:
// both the cache and a repo in it may be links. A source named after its commit gets its repo's name.
func (m *Model) traceCache() {
	target, _ := filepath.EvalSymlinks(m.Folder)
	for _, folder := range []string{m.Folder, target} {
		l, ok := cacheLineage(folder)
		if !ok {
			continue
		}
		m.Lineage = l
		if m.Name == l.Commit {
			m.Name = path.Base(l.Repo)
			m.ID = m.Name
		}
		return
	}
}
