package hub

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// ValidPath refuses a file name from a repo that must not become a local path: absolute, with .. or empty segments,
// backslashes, drive letters, control characters, or names that Windows reserves. The error wraps ErrUnsafePath.
func ValidPath(name string) error {
	if reason := unsafeReason(name); reason != "" {
		return fmt.Errorf("%w: %q %s", wire.ErrUnsafePath, name, reason)
	}
	return nil
}

func unsafeReason(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > 4096:
		return "is too long"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has control characters"
	case strings.ContainsRune(name, '\\'):
		return "has a backslash"
	case len(name) > 1 && name[1] == ':':
		return "starts with a drive letter"
	case path.Clean(name) != name || strings.HasPrefix(name, "/"):
		return "is not a clean relative path"
	case name == "." || !filepath.IsLocal(filepath.FromSlash(name)):
		return "leaves its folder"
	}
	if first, _, _ := strings.Cut(name, "/"); strings.EqualFold(first, ".git") {
		return "lies in .git"
	}
	return ""
}

var repoPart = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$|^_[A-Za-z0-9._-]*$`)

// maxRepoName is the hub's limit for the part after the slash.
const maxRepoName = 96

// ValidRepoID checks the form namespace/name by the hub's own rules.
func ValidRepoID(id string) error {
	namespace, name, ok := strings.Cut(id, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("repo id %q is not of the form namespace/name", id)
	}
	for _, part := range []string{namespace, name} {
		switch {
		case len(part) > maxRepoName:
			return fmt.Errorf("repo id %q: %q is longer than %d characters", id, part, maxRepoName)
		case strings.Contains(part, "--") || strings.Contains(part, ".."):
			return fmt.Errorf("repo id %q has -- or .. in it", id)
		case !repoPart.MatchString(part):
			return fmt.Errorf("repo id %q: %q may hold letters, digits, - _ and ., with neither - nor . at its ends", id, part)
		}
	}
	if strings.HasSuffix(name, ".git") {
		return fmt.Errorf("repo id %q ends in .git", id)
	}
	return nil
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// isCommit says whether rev is a full commit hash: SHA-1, or SHA-256 where a hub stores repos otherwise than in git.
func isCommit(rev string) bool { return commitPattern.MatchString(rev) }

var sha256Pattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func isSHA256(s string) bool { return sha256Pattern.MatchString(s) }
