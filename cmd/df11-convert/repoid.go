package main

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
)

// repoID turns addresses of a model on the Hub into org/name or org/name@revision. It knows
// https://huggingface.co/org/name, with or without /tree/REVISION, and hf://org/name@REVISION. It
// returns text without "://" unchanged.
func repoID(text string) (string, error) {
	if !strings.Contains(text, "://") {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", usageError{err}
	}
	at, path := "", strings.Trim(u.EscapedPath(), "/")
	inUse := func(variable string) bool {
		home, err := url.Parse(os.Getenv(variable))
		return err == nil && u.Scheme == home.Scheme && u.Host == home.Host
	}
	switch {
	case u.Scheme == "hf":
		path = strings.Trim(u.Host+"/"+path, "/")
	case u.Scheme == "https" &&
		(u.Host == "huggingface.co" || u.Host == "www.huggingface.co" || u.Host == "hf.co"),
		inUse("HF_ENDPOINT"), inUse(pushEndpoint):
	default:
		return "", hinted{usagef("%s is not the address of a model on the Hub", text),
			"write org/name, https://huggingface.co/org/name or hf://org/name"}
	}
	parts := strings.Split(strings.TrimPrefix(path, "models/"), "/")
	if parts[0] == "datasets" || parts[0] == "spaces" {
		return "", hinted{usagef("%s is in the Hub's %s, which hold no models", text, parts[0]),
			"give the address of a model"}
	}
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

// somePath matches text that can only mean a local path.
var somePath = regexp.MustCompile(`^([./~]|[A-Za-z]:)|\.safetensors$`)

// onHub reports whether --against names a model on the Hub. Local folders don't matter.
func onHub(spec string) bool {
	repo, _, _ := strings.Cut(spec, "@")
	return strings.Contains(spec, "://") ||
		names.CheckNewRepo(repo) == nil && !somePath.MatchString(spec)
}

// notFound returns the error for a source that's no file, no folder, and no Hub id, with a guess at
// what you meant.
func notFound(id string) error {
	err := usagef("%s: no such file or folder, and not a Hub id such as org/name", id)
	if somePath.MatchString(id) {
		return hinted{err, "check the path"}
	}
	clean := strings.Trim(strings.ReplaceAll(strings.TrimSpace(id), `\`, "/"), "/")
	for _, host := range []string{"www.", "huggingface.co/", "hf.co/"} {
		clean = strings.TrimPrefix(clean, host)
	}
	kind, _, _ := strings.Cut(clean, "/")
	meant, _ := repoID("hf://" + clean)
	repo, _, _ := strings.Cut(meant, "@")
	switch {
	case names.CheckNewRepo(repo) == nil:
		return meantError{err, meant}
	case kind == "datasets" || kind == "spaces":
		return hinted{err,
			"write org/name for a model; the Hub's " + kind + " hold none"}
	case kind == clean && names.CheckNewRepo(kind+"/name") == nil:
		return hinted{err, "add the model's name, such as " + kind + "/name"}
	}
	return hinted{err,
		"check the path; a Hub id is org/name or org/name@revision, made of letters, digits, -, _, and ."}
}
