// Package address reads what people write or paste to name a model on the Hub: org/name, or the
// address of a page. It asks no Hub.
package address

import (
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// PushEndpoint is the variable that names the Hub for DF11 models, if it isn't the sources' Hub.
const PushEndpoint = "DF11_PUSH_ENDPOINT"

// An Address is what people write or paste to name a model on the Hub.
type Address struct {
	Repo     string // org/name
	Revision string // a branch, tag, or commit; "" if none is named
	File     string // a .safetensors file in the repo; "" if none is named
}

// ID returns org/name or org/name@revision.
func (a Address) ID() string {
	if a.Revision == "" {
		return a.Repo
	}
	return a.Repo + "@" + a.Revision
}

// String returns the shortest text that names the same: the ID, or hf://org/name@revision/file.
func (a Address) String() string {
	if a.File == "" {
		return a.ID()
	}
	repo := a
	repo.File, repo.Revision = "", url.PathEscape(a.Revision)
	file := (&url.URL{Path: a.File}).EscapedPath()
	return "hf://" + repo.ID() + "/" + file
}

// pages are the kinds of pages below a model's own that show a revision, or one file of it.
var pages = []string{"tree", "blob", "resolve", "raw", "commit"}

// otherPages are what the Hub shows besides models, by the first part of an address.
var otherPages = map[string]string{"datasets": "a dataset", "spaces": "a Space",
	"collections": "a collection", "papers": "a paper", "docs": "a page of the documentation",
	"blog": "a post", "posts": "a post", "organizations": "a page about an organization",
	"settings": "a page of your settings", "learn": "a course", "buckets": "a bucket",
	"kernels": "a kernel"}

// slashedRevision matches the revisions with slashes that the Hub makes itself. Its own addresses have
// them with slashes too (huggingface_hub/hf_api.py, SPECIAL_REFS_REVISION_REGEX).
var slashedRevision = regexp.MustCompile(`^refs/(convert/[\w-]+|pr/\d+)(/|$)`)

// Parse reads what people write or paste: org/name, org/name@revision, hf://…, the address of
// any page of a model or of its API on the Hub or on a Hub of the environment, the line that clones
// it, or the address of a .safetensors file. Blanks, quotes, and slashes around it don't matter. The
// page and the Action pass on what they were given, so this is the only parser. It returns other
// text as the repo of an address, for the caller to judge.
func Parse(text string) (Address, error) {
	bare := strings.TrimPrefix(strings.TrimSpace(text), "git clone ")
	bare = strings.Trim(bare, " \t\r\n\"'`<>")
	if holdsSecret(bare) {
		return Address{}, hint.On(usage.Errorf("the address holds a user name, a password, or a token"),
			hint.AddressSecret)
	}
	if rest, ok := strings.CutPrefix(bare, "git@"); ok { // as SSH writes it: git@hf.co:org/name
		bare = strings.Replace(rest, ":", "/", 1)
	}
	switch first, _, _ := strings.Cut(bare, "/"); {
	case slices.Contains(names.HubHosts, strings.ToLower(first)):
		bare = "https://" + bare
	case strings.Count(bare, "/") == 2 && slices.Contains([]string{"datasets", "spaces", "models"}, first):
		bare = "https://" + names.HubHosts[0] + "/" + bare // as in an address
	}
	if !strings.Contains(bare, "://") {
		if id := strings.TrimRight(bare, "/"); names.CheckNewRepo(id) == nil {
			bare = id // a path or an ID that the shell has completed
		}
		repo, revision, pinned := strings.Cut(bare, "@")
		if pinned && revision == "" {
			return Address{}, hint.On(usage.Errorf("%s: the revision after @ is empty", bare),
				hint.EmptyRevision)
		}
		return Address{Repo: repo, Revision: revision}, nil
	}
	u, err := url.Parse(bare)
	if err != nil { // which may show a password
		return Address{}, hint.On(usage.Errorf("that's not an address on the web"), hint.NotHubPage)
	}
	return parsePage(u)
}

// holdsSecret reports whether a text has a user or a password before the host, as git writes it, a
// query that gives access, or an access token anywhere. The program prints addresses as they were
// written, and whatever it prints may end up in a log.
func holdsSecret(text string) bool {
	issuer, _ := names.AccessToken(text)
	return issuer != "" || login.MatchString(text) || access.MatchString(text)
}

// login matches the part of an address that logs in. access matches a parameter that does.
var (
	login  = regexp.MustCompile(`(?i)^(https?://[^/?#]*@|([a-z]+://)?[^/?#@\\]*:[^/?#@\\]*@)`)
	access = regexp.MustCompile(`(?i)[?&#][^=&#/]*(token|password|passwd|secret|signature|api_?key|auth)=`)
)

// parsePage reads the address of a page.
func parsePage(u *url.URL) (Address, error) {
	u.User = nil // git's, which isn't secret
	var revision string
	rest, ok := page(u)
	if !ok {
		return Address{}, hint.On(usage.Errorf("%s is not the address of a model on the Hub", u), hint.NotHubPage)
	}
	parts := strings.Split(rest, "/")
	for len(parts) > 1 && (parts[0] == "api" || parts[0] == "models") {
		parts = parts[1:]
	}
	if other := otherPages[parts[0]]; other != "" {
		return Address{}, hint.On(usage.Errorf("%s is %s, not a model", u, other), hint.NotModel)
	}
	if len(parts) < 2 {
		return Address{}, hint.On(usage.Errorf("%s names no model", u), hint.NoModelNamed)
	}
	var file []string
	if u.Scheme == "hf" {
		parts[1], revision, _ = strings.Cut(parts[1], "@")
		revision, file = cutRevision(append([]string{revision}, parts[2:]...))
	} else if len(parts) > 3 && slices.Contains(pages, parts[2]) {
		revision, file = cutRevision(parts[3:])
	}
	name, _, _ := strings.Cut(parts[1], ":") // org/name:Q4 is how other programs name a file
	name = strings.TrimSuffix(name, ".git")
	a := Address{Repo: parts[0] + "/" + name, Revision: revision}
	joined := path.Join(file...)
	if _, shard := reader.ShardOf(joined); reader.IsSafetensors(joined) && !shard {
		a.File = joined // a shard stands for the whole model
	}
	var err error
	for _, part := range []*string{&a.Repo, &a.Revision, &a.File} {
		if *part, err = url.PathUnescape(*part); err != nil {
			return Address{}, usage.Errorf("%s: %w", u, err)
		}
	}
	return a, nil
}

// cutRevision returns the revision that a path begins with, and the rest.
func cutRevision(parts []string) (revision string, file []string) {
	n := 1
	if slashedRevision.MatchString(strings.Join(parts, "/")) {
		n = 3
	}
	return strings.Join(parts[:n], "/"), parts[n:]
}

// page returns the path of an address on a Hub that we know: the Hub, or one of the environment, which
// may have a path of its own.
func page(u *url.URL) (path string, ok bool) {
	host := strings.ToLower(u.Host)
	if u.Scheme == "hf" { // as the Python client's file system writes it: hf://org/name@revision/file
		return strings.Trim(u.Host+"/"+strings.Trim(u.EscapedPath(), "/"), "/"), true
	}
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme && slices.Contains(names.HubHosts, strings.TrimSuffix(host, port)) {
			return strings.Trim(u.EscapedPath(), "/"), true
		}
	}
	whole := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + u.EscapedPath() + "/"
	for _, variable := range []string{"HF_ENDPOINT", PushEndpoint} {
		hub := strings.TrimRight(os.Getenv(variable), "/") + "/"
		if rest, ok := strings.CutPrefix(whole, hub); ok && hub != "/" {
			return strings.Trim(rest, "/"), true
		}
	}
	return "", false
}

// RepoID returns the org/name or org/name@revision that a text names.
func RepoID(text string) (string, error) {
	a, err := Parse(text)
	return a.ID(), err
}

// OnHub reports whether --against names a model on the Hub. Local folders don't matter.
func OnHub(spec string) bool {
	a, err := Parse(spec)
	return err != nil || names.CheckNewRepo(a.Repo) == nil && !reader.IsSafetensors(a.Repo)
}

// NotFound returns the error for a source that's no file, no folder, and no Hub id.
func NotFound(id string) error {
	return hint.On(usage.Errorf("%s: no such file or folder, and not a Hub id such as org/name", id),
		hint.NotFolder)
}
