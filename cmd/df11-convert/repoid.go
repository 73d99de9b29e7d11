package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// hubHosts are the names of the Hub. Its addresses need no https:// before them.
var hubHosts = []string{"huggingface.co", "www.huggingface.co", "hf.co"}

// repoID turns addresses of a model on the Hub into org/name or org/name@revision. It knows
// https://huggingface.co/org/name, with or without /tree/REVISION, the same on the Hubs of the
// environment, and hf://org/name@REVISION. It returns other text without "://" unchanged.
func repoID(text string) (string, error) {
	address := text
	if host, _, _ := strings.Cut(text, "/"); slices.Contains(hubHosts, host) {
		address = "https://" + text
	}
	if !strings.Contains(address, "://") {
		return text, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", usageError{err}
	}
	at, path := "", strings.Trim(u.EscapedPath(), "/")
	origin := u.Scheme + "://" + u.Host
	inUse := func(variable string) bool { return strings.TrimRight(os.Getenv(variable), "/") == origin }
	switch {
	case u.Scheme == "hf":
		path = strings.Trim(u.Host+"/"+path, "/")
	case u.Scheme == "https" && slices.Contains(hubHosts, u.Host), inUse("HF_ENDPOINT"),
		inUse(pushEndpoint):
	default:
		return "", hinted{usagef("%s is not the address of a model on the Hub", text),
			"write org/name, https://huggingface.co/org/name or hf://org/name"}
	}
	parts := strings.Split(path, "/")
	if len(parts) == 4 && parts[2] == "tree" {
		at, parts = "@"+parts[3], parts[:2]
	}
	if len(parts) != 2 {
		return "", hinted{usagef("%s is not the address of a model: want org/name after the host",
			text),
			"end the address after org/name or /tree/REVISION; choose one file of a repo with --file"}
	}
	id, err := url.PathUnescape(parts[0] + "/" + parts[1] + at)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", text, err)}
	}
	return id, nil
}

// onHub reports whether --against names a model on the Hub. Local folders don't matter.
func onHub(spec string) bool {
	id, err := repoID(spec)
	repo, _, _ := strings.Cut(id, "@")
	return err != nil || names.CheckNewRepo(repo) == nil && !reader.IsSafetensors(repo)
}

// notFound returns the error for a source that's no file, no folder, and no Hub id.
func notFound(id string) error {
	return hinted{usagef("%s: no such file or folder, and not a Hub id such as org/name", id),
		"check the path; a Hub id is org/name or org/name@revision, made of letters, digits, -, _, and ."}
}
