// Package names decides which paths, repo IDs, commits, and SHA-256 sums are well formed, and
// spells the file names that this project writes. It looks at neither the machine nor a server, so
// a name gets the same verdict on every system.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Files of a repo or of a result folder.
const (
	Config     = "config.json"
	Card       = "README.md"
	Manifest   = "df11-manifest.json"
	Chart      = "df11.png"          // the model card's picture
	Weights    = "model.safetensors" // of a model in one file
	ModelIndex = "model_index.json"  // lists the parts of a pipeline
	Attributes = ".gitattributes"
)

// Names, without extension, of weight files in a result. No library finds weights by them, so plain
// from_pretrained of transformers and diffusers stops instead of filling a model with random
// weights. DF11 readers take every .safetensors file of the folder.
const (
	Remainder = "remainder" // the tensors of no unit; the official compressor calls it model
	Whole     = "df11"      // units and remainder in one file
)

const (
	// Ours begins the names of files and folders that are deleted when a conversion is complete.
	Ours = ".df11"
	// JournalDir is the folder of a repo that holds the journals.
	JournalDir = Ours
	// StateDir is the folder in the result folder that holds the journal, the lock, and the spools.
	StateDir = Ours + "-convert"
)

// IsJournal reports whether a file is the journal of a conversion that hasn't finished its
// destination.
func IsJournal(name string) bool {
	dir := path.Dir(name)
	return (dir == JournalDir || dir == StateDir) && path.Ext(name) == ".json"
}

const (
	maxPath = 4096 // bytes
	maxName = 255  // bytes of a file name, on common file systems
)

// IsListed reports whether a repo may list a path. It refuses only what no repo should hold: a path
// that could lead out of the repo's folder, into .git, or to a Windows drive, or that could control
// a terminal. For a path to write, use [IsSafe].
func IsListed(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return fs.ValidPath(path) && path != "." && len(path) <= maxPath &&
		!strings.ContainsFunc(path, unicode.IsControl) && !strings.Contains(path, `\`) &&
		!(len(path) > 1 && path[1] == ':') && Folded(first) != ".git"
}

// IsSafe reports whether you may write a path anywhere. It refuses what [IsListed] refuses, .git at
// any depth, and names that some file system rejects or takes for another file or a device. Package
// df11 has the same rule (files.py), and testdata/paths.json has cases for both.
func IsSafe(path string) bool {
	refused := func(name string) bool {
		return len(name) > maxName || otherName.MatchString(Folded(name))
	}
	return IsListed(path) && !strings.ContainsAny(path, `:*?"<>|`) &&
		!strings.ContainsFunc(path, isIgnored) &&
		!slices.ContainsFunc(strings.Split(path, "/"), refused)
}

// otherName matches folded names that mean something else: a Windows device with any extension, a
// name that Windows reads without its last dots and blanks, and Git's own folder and its short
// form. Git refuses the folder's names, too (core.protectHFS and core.protectNTFS).
var otherName = regexp.MustCompile(
	`^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)|[. ]$|^(\.git|git~\d+)$`)

// isIgnored reports whether HFS+ ignores a character in names. Git has the same list: next_hfs_char
// in its utf8.c.
func isIgnored(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f ||
		r == 0xfeff
}

// Folded returns the same text for all paths that file systems may take for one file, because they
// ignore case (NTFS by single characters, APFS also ß against ss), how an accent is encoded (HFS+
// and APFS), or some characters (HFS+).
func Folded(path string) string {
	visible := strings.Map(func(r rune) rune {
		if isIgnored(r) {
			return -1
		}
		return r
	}, path)
	cased := strings.ToLower(strings.ToUpper(norm.NFD.String(visible)))
	return norm.NFC.String(cases.Fold().String(cased))
}

// IsCommit reports whether a revision is the full hash of a commit: SHA-1, or SHA-256 on a Hub that
// stores repos without git. Branches and pull requests have other names.
func IsCommit(revision string) bool { return commit.MatchString(revision) }

var commit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// IsBlob reports whether a text is the SHA-1 by which git names the content of a file.
func IsBlob(text string) bool { return len(text) == 40 && commit.MatchString(text) }

// IsSHA256 reports whether a text is a SHA-256 in lower-case hex.
func IsSHA256(text string) bool { return len(text) == 64 && commit.MatchString(text) }

// IsRepo reports whether a repo ID may go into a URL or a path. It accepts repos that a Hub no
// longer creates, such as those without a namespace.
func IsRepo(id string) bool { return repo.MatchString(id) && !strings.Contains(id, "..") }

var repo = regexp.MustCompile(`^[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?$`)

// maxRepo bounds both parts of a repo ID, in bytes.
const maxRepo = 96

// CheckNewRepo refuses a repo ID that the Hub's rules don't allow for a new repo.
func CheckNewRepo(id string) error {
	valid := func(part string) bool {
		return len(part) <= maxRepo && newRepo.MatchString(part) &&
			!strings.Contains(part, "--") && !strings.Contains(part, "..")
	}
	namespace, name, _ := strings.Cut(id, "/")
	if valid(namespace) && valid(name) && !strings.HasSuffix(name, ".git") {
		return nil
	}
	return fmt.Errorf("repo id %q must be namespace/name: up to %d letters, digits, - _ or . in "+
		"each, no - or . at either end, no -- or .., and no .git at the end of the name",
		id, maxRepo)
}

// newRepo matches either part of the ID of a new repo.
var newRepo = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$|^_[A-Za-z0-9._-]*$`)

// CheckBranch refuses a name that no branch can have, by the rules of `git check-ref-format
// --branch`, and the hash of a commit, which would name that instead.
func CheckBranch(name string) error {
	if IsCommit(name) {
		return fmt.Errorf("%s is a commit, not a branch", name)
	}
	wrong := func(part string) bool {
		return part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock")
	}
	if noBranch.MatchString(name) || slices.ContainsFunc(strings.Split(name, "/"), wrong) {
		return fmt.Errorf("%q can't be the name of a branch: git takes no blanks, none of ~^:?*[\\, and no "+
			"part that begins with . or ends in .lock", name)
	}
	return nil
}

// noBranch matches what git takes nowhere in the name of a branch, at its start, or at its end.
var noBranch = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^-|\.$|^@$|^HEAD$`)

// KeptSpool returns the name of an output's kept spool in the state folder.
func KeptSpool(output string) string {
	sum := sha256.Sum256([]byte(output))
	return "spool-" + hex.EncodeToString(sum[:8]) + ".data"
}

// IsKeptSpool reports whether a file name is that of a kept spool.
func IsKeptSpool(name string) bool {
	ok, _ := path.Match("spool-"+strings.Repeat("[0-9a-f]", 16)+".data", name)
	return ok
}
