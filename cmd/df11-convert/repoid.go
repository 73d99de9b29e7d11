package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// hubName is repoID for the Hub in use.
func hubName(text string) (string, error) { return repoID(text, os.Getenv("HF_ENDPOINT")) }

// repoID turns the ways in which people name a model on the Hub into org/name or org/name@revision:
// https://huggingface.co/org/name, with /tree/REVISION if they like, and hf://org/name@REVISION. Everything else comes back
// as it is. endpoint is the address of the Hub in use, "" for the usual one.
func repoID(text, endpoint string) (string, error) {
	if !strings.Contains(text, "://") {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", usageError{err}
	}
	at, path := "", strings.Trim(u.EscapedPath(), "/")
	switch home, _ := url.Parse(endpoint); {
	case u.Scheme == "hf":
		path = strings.Trim(u.Host+"/"+path, "/")
	case u.Scheme == "https" && (u.Host == "huggingface.co" || u.Host == "www.huggingface.co" || u.Host == "hf.co"),
		home != nil && u.Scheme == home.Scheme && u.Host == home.Host:
	default:
		return "", hinted{usagef("%s is no address of a model on the Hub", text), "write org/name, https://huggingface.co/org/name or hf://org/name"}
	}
	parts := strings.Split(strings.TrimPrefix(path, "models/"), "/")
	if len(parts) > 0 && (parts[0] == "datasets" || parts[0] == "spaces") {
		return "", hinted{usagef("%s is in %s of the Hub, which hold no models", text, parts[0]), "give the address of a model"}
	}
	if len(parts) == 4 && parts[2] == "tree" {
		at, parts = "@"+parts[3], parts[:2]
	}
	if len(parts) != 2 {
		return "", hinted{usagef("%s is no address of a model: want org/name behind the host", text),
			"an address may end in /tree/REVISION; one file of a repo is chosen with --file"}
	}
	id, err := url.PathUnescape(parts[0] + "/" + parts[1] + at)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", text, err)}
	}
	return id, nil
}
