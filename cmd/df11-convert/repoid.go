package main

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
)

// repoID turns the ways in which people name a model on the Hub into org/name or org/name@revision:
// https://huggingface.co/org/name, with /tree/REVISION if they like, and hf://org/name@REVISION.
// Everything else comes back as it is.
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
		return "", hinted{usagef("%s is no address of a model on the Hub", text),
			"write org/name, https://huggingface.co/org/name or hf://org/name"}
	}
	parts := strings.Split(strings.TrimPrefix(path, "models/"), "/")
	if parts[0] == "datasets" || parts[0] == "spaces" {
		return "", hinted{usagef("%s is in %s of the Hub, which hold no models", text, parts[0]),
			"give the address of a model"}
	}
	if len(parts) == 4 && parts[2] == "tree" {
		at, parts = "@"+parts[3], parts[:2]
	}
	if len(parts) != 2 {
		return "", hinted{usagef("%s is no address of a model: want org/name behind the host",
			text),
			"an address may end in /tree/REVISION; one file of a repo is chosen with --file"}
	}
	id, err := url.PathUnescape(parts[0] + "/" + parts[1] + at)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", text, err)}
	}
	return id, nil
}

// somePath matches what can only be meant as a path of this machine.
var somePath = regexp.MustCompile(`^([./~]|[A-Za-z]:)|\.safetensors$`)

// notFound tells that a source is no file, no folder and no Hub id, and what was probably meant.
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
		return hinted{err, "did you mean: " + meant}
	case kind == "datasets" || kind == "spaces":
		return hinted{err,
			"only models can be converted, not " + kind + "; write org/name for a model"}
	case kind == clean && names.CheckNewRepo(kind+"/name") == nil:
		return hinted{err, "a Hub id names a model, too, such as " + kind + "/name"}
	}
	return hinted{err,
		"check the path; a Hub id is org/name or org/name@revision, of letters, digits, - _ and ."}
}
