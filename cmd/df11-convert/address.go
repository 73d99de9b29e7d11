package main

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An address is what people write or paste to name a model on the Hub.
type address struct {
	repo     string // org/name
	revision string // a branch, tag, or commit; "" if none is named
	file     string // a .safetensors file in the repo; "" if none is named
}

// id returns org/name or org/name@revision.
func (a address) id() string {
	if a.revision == "" {
		return a.repo
	}
	return a.repo + "@" + a.revision
}

// String returns the shortest text that names the same: the ID, or hf://org/name@revision/file.
func (a address) String() string {
	if a.file == "" {
		return a.id()
	}
	repo := a
	repo.file, repo.revision = "", url.PathEscape(a.revision)
	file := (&url.URL{Path: a.file}).EscapedPath()
	return "hf://" + repo.id() + "/" + file
}

// hubHosts are the Hub's names, and that of its best known mirror. Addresses there need no https://.
var hubHosts = []string{"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"}

// pages are the kinds of pages below a model's own that show a revision, or one file of it.
var pages = []string{"tree", "blob", "resolve", "raw", "commit"}

// otherRepos are the kinds of repos that hold no model, by their place in an address.
var otherRepos = map[string]string{"datasets": "a dataset", "spaces": "a Space"}

// parseAddress reads what people write or paste: org/name, org/name@revision, hf://…, the address of
// any page of a model or of its API on the Hub or on a Hub of the environment, the line that clones
// it, or the address of a .safetensors file. Blanks, quotes, and slashes around it don't matter. The
// page and the Action pass on what they were given, so this is the only parser. It returns other
// text as the repo of an address, for the caller to judge.
func parseAddress(text string) (address, error) {
	bare := strings.TrimPrefix(strings.TrimSpace(text), "git clone ")
	bare = strings.Trim(bare, " \t\r\n\"'`<>")
	if rest, ok := strings.CutPrefix(bare, "git@"); ok { // as SSH writes it: git@hf.co:org/name
		bare = strings.Replace(rest, ":", "/", 1)
	}
	switch first, _, _ := strings.Cut(bare, "/"); {
	case slices.Contains(hubHosts, strings.ToLower(first)):
		bare = "https://" + bare
	case otherRepos[first] != "" && strings.Count(bare, "/") == 2: // as in an address
		bare = "https://" + hubHosts[0] + "/" + bare
	}
	if !strings.Contains(bare, "://") {
		if id := strings.TrimRight(bare, "/"); names.CheckNewRepo(id) == nil {
			bare = id // a path or an ID that the shell has completed
		}
		repo, revision, pinned := strings.Cut(bare, "@")
		if pinned && revision == "" {
			return address{}, hinted{usagef("%s: the revision after @ is empty", bare),
				"leave out the @, or name a branch, a tag, or a commit after it"}
		}
		return address{repo: repo, revision: revision}, nil
	}
	u, err := url.Parse(bare)
	if err != nil {
		return address{}, usageError{err}
	}
	return parsePage(u)
}

// parsePage reads the address of a page.
func parsePage(u *url.URL) (address, error) {
	var revision string
	rest := strings.Trim(u.EscapedPath(), "/")
	switch {
	case u.Scheme == "hf": // as the Python client's file system writes it: hf://org/name@revision/file
		rest = strings.Trim(u.Host+"/"+rest, "/")
	case !isHub(u):
		return address{}, hinted{usagef("%s is not the address of a model on the Hub", u),
			"write org/name, https://huggingface.co/org/name or hf://org/name"}
	}
	parts := strings.Split(rest, "/")
	for len(parts) > 1 && (parts[0] == "api" || parts[0] == "models") {
		parts = parts[1:]
	}
	if other := otherRepos[parts[0]]; other != "" {
		return address{}, hinted{usagef("%s is %s, not a model", u, other),
			"name a model, such as Qwen/Qwen3-8B"}
	}
	if len(parts) < 2 {
		return address{}, hinted{usagef("%s names no model", u), "add the model to the address: org/name"}
	}
	var file []string
	if u.Scheme == "hf" {
		parts[1], revision, _ = strings.Cut(parts[1], "@")
		file = parts[2:]
	} else if len(parts) > 3 && slices.Contains(pages, parts[2]) {
		revision, file = parts[3], parts[4:]
	}
	name, _, _ := strings.Cut(parts[1], ":") // org/name:Q4 is how other programs name a file
	name = strings.TrimSuffix(name, ".git")
	a := address{repo: parts[0] + "/" + name, revision: revision}
	joined := path.Join(file...)
	if _, shard := reader.ShardOf(joined); reader.IsSafetensors(joined) && !shard {
		a.file = joined // a shard stands for the whole model
	}
	var err error
	for _, part := range []*string{&a.repo, &a.revision, &a.file} {
		if *part, err = url.PathUnescape(*part); err != nil {
			return address{}, usageError{fmt.Errorf("%s: %w", u, err)}
		}
	}
	return a, nil
}

// isHub reports whether an address is on a Hub that we know: the Hub, or one of the environment.
func isHub(u *url.URL) bool {
	if web := u.Scheme == "https" || u.Scheme == "http"; web &&
		slices.Contains(hubHosts, strings.ToLower(u.Host)) {
		return true
	}
	return slices.ContainsFunc([]string{"HF_ENDPOINT", pushEndpoint}, func(variable string) bool {
		return strings.TrimRight(os.Getenv(variable), "/") == u.Scheme+"://"+u.Host
	})
}

// repoID returns the org/name or org/name@revision that a text names.
func repoID(text string) (string, error) {
	a, err := parseAddress(text)
	return a.id(), err
}

// onHub reports whether --against names a model on the Hub. Local folders don't matter.
func onHub(spec string) bool {
	a, err := parseAddress(spec)
	return err != nil || names.CheckNewRepo(a.repo) == nil && !reader.IsSafetensors(a.repo)
}

// notFound returns the error for a source that's no file, no folder, and no Hub id.
func notFound(id string) error {
	return hinted{usagef("%s: no such file or folder, and not a Hub id such as org/name", id),
		"check the path; a Hub id is org/name or org/name@revision, made of letters, digits, -, _, and ."}
}
