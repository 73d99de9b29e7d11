package hub

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// ValidPath refuses a file name from a repo that must not become a local path: absolute, with .. or
// empty segments, backslashes, drive letters, control characters, or names that Windows reserves.
// The error wraps ErrUnsafePath.
func ValidPath(name string) error {
	first, _, _ := strings.Cut(name, "/")
	if !fs.ValidPath(name) || name == "." || len(name) > 4096 || strings.ContainsFunc(name,
		unicode.IsControl) ||
		strings.ContainsRune(name, '\\') || len(name) > 1 && name[1] == ':' ||
		!filepath.IsLocal(filepath.FromSlash(name)) ||
		strings.EqualFold(first, ".git") {
		return fmt.Errorf("%w: %.200q is not a clean path below the repo's folder",
			wire.ErrUnsafePath, name)
	}
	return nil
}

var repoPart = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$|^_[A-Za-z0-9._-]*$`)

// maxRepoName is the hub's limit for the part after the slash.
const maxRepoName = 96

// ValidRepoID checks the form namespace/name by the hub's own rules.
func ValidRepoID(id string) error {
	valid := func(part string) bool {
		return len(part) <= maxRepoName && repoPart.MatchString(part) && !strings.Contains(part,
			"--") && !strings.Contains(part, "..")
	}
	namespace, name, _ := strings.Cut(id, "/")
	if !valid(namespace) || !valid(name) || strings.HasSuffix(name, ".git") {
		return fmt.Errorf(
			"repo id %q is not of the form namespace/name: each has up to %d letters, digits, - _ and ., with neither - nor . "+
				"at its ends, nor -- or .. or a last .git", id, maxRepoName)
	}
	return nil
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// isCommit says whether rev is a full commit hash: SHA-1, or SHA-256 where a hub stores repos
// otherwise than in git.
func isCommit(rev string) bool { return commitPattern.MatchString(rev) }

var sha256Pattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func isSHA256(s string) bool { return sha256Pattern.MatchString(s) }
