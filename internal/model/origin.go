package model

import (
	"fmt"
	"path"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
)

// An Origin is the Hub repo whose weights a source has.
type Origin struct {
	Repo, Commit string
	Endpoint     string // of its Hub
	Open         bool   // its Hub says clearly that everyone may read it
}

// Described returns what a Hub says about a source. The model lists no files.
func Described(info *hub.RepoInfo, endpoint string) *Model {
	return &Model{
		ID: info.ID, Name: info.Name(), Commit: info.SHA, Endpoint: endpoint,
		Origin:  &Origin{info.ID, info.SHA, endpoint, info.Open},
		Private: info.Private, Gated: info.Gated,
		PipelineTag: info.PipelineTag, LibraryName: info.LibraryName,
	}
}

// NameOf returns the name of a repo without its namespace, as the user asked for it: the Hub redirects
// from names that a repo had before, and a result keeps the name that it has got from one.
func NameOf(asked string, info *hub.RepoInfo) string {
	if name := path.Base(asked); !strings.EqualFold(name, info.Name()) {
		return name
	}
	return info.Name()
}

// Closed says why not everyone may read the source, or returns "" if its Hub says that everyone may.
// A local source has no owner to ask.
func (m *Model) Closed() string {
	switch o := m.Origin; {
	case o == nil:
		return "the source is local, so there is no owner to ask"
	case o.Open:
		return ""
	case m.Private:
		return o.Repo + " is private"
	case m.Gated != "":
		return o.Repo + " is gated"
	default:
		return "the Hub doesn't say clearly that everyone may read " + o.Repo
	}
}

// Differs compares the weight files with those of a repo, by path and SHA-256. It says how the first
// one differs, or returns "" if all are equal.
func (m *Model) Differs(from *hub.RepoInfo) string {
	if len(m.Listing.Weights) == 0 {
		return "no weights were compared"
	}
	files := from.ByPath()
	for _, w := range m.Files() {
		switch f, ok := files[w.Path]; {
		case !ok:
			return fmt.Sprintf("%s has no %s", from.ID, w.Path)
		case f.SHA256 == "" || w.SHA256 == "":
			return "the SHA-256 of " + w.Path + " isn't known"
		case f.SHA256 != w.SHA256 || f.Size != w.Size:
			return fmt.Sprintf("%s isn't that of %s, by its SHA-256", w.Path, from.ID)
		}
	}
	return ""
}
