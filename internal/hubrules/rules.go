// Package hubrules states what the Hugging Face Hub takes: how many files, how large, and which
// values in a model card. Plans, conversions, and the Hub for tests share these rules, so a plan
// says before any work what the Hub would refuse after hours of upload. The package knows no
// protocol: internal/hubtest has the answers, with the source of each.
//
// The Hub may change its lists of licenses and tasks at any time. So these decide what to leave out
// of a card that we write, and never what a file is.
package hubrules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
)

// What a repo may hold, after https://huggingface.co/docs/hub/storage-limits unless noted.
const (
	// FolderFiles is the most files in one folder.
	// https://github.com/huggingface/datasets/issues/7956 has the refusal.
	FolderFiles = 10_000
	// FileBytes is the most that one file may have. The Hub advises AdvisedFileBytes.
	FileBytes        = 500_000_000_000
	AdvisedFileBytes = 200_000_000_000
	// RepoFiles is how many files the Hub advises for a repo, at most.
	RepoFiles = 100_000
	// CommitFiles and CommitBytes bound one commit: its large files, and the bytes of small files in
	// its body.
	CommitFiles = 25_000
	CommitBytes = 1_000_000_000
	// GitFileBytes is the most that a file in the commit's own body may have.
	// https://github.com/huggingface/huggingface_hub/issues/2666 has the refusal.
	GitFileBytes = 10 << 20
	// PrivateBytes is the private storage of a free account. More can be bought.
	PrivateBytes = 100_000_000_000
	// NameBytes is the most that either part of a repo ID may have, after huggingface_hub's
	// utils/_validators.py.
	NameBytes = 96
)

// A File is a file of a repo, as far as the limits look at it.
type File struct {
	Path string
	Size int64
}

// A Problem is something that the Hub refuses.
type Problem struct {
	Text string // one line, in words for the user
	Hint hint.Hint
}

// CheckFiles returns what the Hub would refuse about these files of a repo, and what it advises
// against.
func CheckFiles(files []File) (refused, advised []Problem) {
	folders := map[string]int{}
	for _, f := range files {
		folders[path.Dir(f.Path)]++
		switch {
		case f.Size > FileBytes:
			refused = append(refused, Problem{
				fmt.Sprintf("%s has %s, and a file on the Hub has at most %s", f.Path,
					human.Bytes(f.Size), human.Bytes(FileBytes)),
				hint.LargeFile})
		case f.Size > AdvisedFileBytes:
			advised = append(advised, Problem{
				fmt.Sprintf("%s has %s, and the Hub advises at most %s", f.Path,
					human.BytesUp(f.Size), human.Bytes(AdvisedFileBytes)), hint.Hint{}})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if n := folders[dir]; n > FolderFiles {
			refused = append(refused, Problem{fmt.Sprintf(
				"%s files in one folder (%s), and a folder on the Hub has at most %s",
				human.Grouped(int64(n)), cmp.Or(map[string]string{".": "the repo's own"}[dir], dir),
				human.Grouped(FolderFiles)),
				hint.ManyFiles})
		}
	}
	if len(files) > RepoFiles {
		advised = append(advised, Problem{fmt.Sprintf(
			"%s files, and the Hub advises at most %s in a repo",
			human.Grouped(int64(len(files))), human.Grouped(RepoFiles)), hint.Hint{}})
	}
	return refused, advised
}

// CheckPrivate returns what to know about a private repo of so many bytes. What an account has bought,
// and what it stores already, only its owner knows.
func CheckPrivate(bytes int64) (advised []Problem) {
	if bytes > PrivateBytes {
		advised = append(advised, Problem{fmt.Sprintf(
			"with --push, the repo is private and has %s; a free account has %s of private storage",
			human.Bytes(bytes), human.Bytes(PrivateBytes)), hint.Hint{}})
	}
	return advised
}
