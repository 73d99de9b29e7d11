package hub

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const shaA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// TestInfoReadsWhatMatters checks that members of odd types don't fail a run, and that wrong values
// are refused where they matter.
func TestInfoReadsWhatMatters(t *testing.T) {
	good := RepoInfo{ID: "a/b", SHA: testCommit, Files: []FileInfo{{Path: "x", Size: 1}}}
	known, auto := good, good
	known.Private, known.Gated, known.PipelineTag, known.LibraryName = true, "auto", "text-generation", "transformers"
	known.Files = []FileInfo{{Path: "config.json", Size: 5, BlobID: "b1"}, {Path: "m.safetensors", Size: 10, SHA256: shaA, BlobID: "b2"}}
	auto.Gated = "auto"
	open := good
	open.Open = true
	file := func(members string) string { return `"siblings":[{"rfilename":"x",` + members + `}]` }
	const x = `"siblings":[{"rfilename":"x","size":1}]`
	type row struct {
		name, members string // in addition to the commit
		want          *RepoInfo
		err           error
	}
	rows := []row{
		{"all there is", `"id":"a/b","private":true,"gated":"auto","pipeline_tag":"text-generation","library_name":"transformers",
			"tags":["x"],"cardData":{"license":"mit"},"safetensors":{"parameters":{"BF16":7},"total":7},
			"siblings":[{"rfilename":"config.json","size":5,"blobId":"b1"},
			{"rfilename":"m.safetensors","size":9,"blobId":"b2","lfs":{"sha256":"` + shaA + `","size":10,"pointerSize":1}}]`, &known, nil},
		{"no id", x, &good, nil},
		{"tags as text", `"tags":"x",` + x, &good, nil},
		{"card with lists", `"cardData":{"license":["mit","other"],"model-index":[{"a":[]}]},` + x, &good, nil},
		{"gated true", `"gated":true,` + x, &auto, nil},
		{"open", `"private":false,"gated":false,` + x, &open, nil},
		{"private false alone", `"private":false,` + x, &good, nil},
		{"gated in another form", `"private":false,"gated":{"mode":"auto"},` + x, &good, nil},
		{"private in another form", `"private":"no","gated":false,` + x, &good, nil},
		{"pipeline as number", `"pipeline_tag":3,` + x, &good, nil},
		{"odd times", `"lastModified":"yesterday","createdAt":7,` + x, &good, nil},
		{"odd widgets", `"widgetData":{"a":1},"transformersInfo":[],"spaces":"x","likes":"many",` + x, &good, nil},

		{"short commit", `"sha":"abc"`, nil, ErrNotHub},
		{"no commit", `"sha":""`, nil, ErrRevisionNotFound},
		{"another commit", `"sha":"` + strings.Repeat("f", 40) + `"`, nil, ErrChanged},
		{"files as text", `"siblings":"x"`, nil, ErrNotHub},
		{"file as text", `"tags":"x","siblings":[{"rfilename":"x","size":1},"y"]`, nil, ErrNotHub},
		{"size as text", file(`"size":"1"`), nil, ErrNotHub},
		{"hash as list", file(`"lfs":{"sha256":[],"size":1}`), nil, ErrNotHub},
		{"bad hash", file(`"lfs":{"sha256":"zz","size":1}`), nil, ErrNotHub},
		{"negative size", file(`"size":-5`), nil, ErrNotHub},
	}
	// it becomes part of paths and URLs
	for _, id := range []string{"../x", "a/b/c", "a/..", "a/b\u009b", "a b/c"} {
		rows = append(rows, row{"id " + id, `"id":"` + id + `",` + x, nil, ErrNotHub})
	}
	for _, name := range []string{"../x", "/etc/passwd", `a\\b`, "C:/x", ".git/hooks/x", "a\u009bb"} {
		rows = append(rows, row{"file " + name, `"siblings":[{"rfilename":"` + name + `","size":1}]`, nil, ErrUnsafePath},
			row{"file of no size " + name, `"siblings":[{"rfilename":"` + name + `"}]`, nil, ErrUnsafePath})
	}
	for _, tt := range rows {
		c, _ := testClient(t, script(says(200, `{"sha":"`+testCommit+`",`+tt.members+`}`)))
		got, err := c.Info(t.Context(), "a/b", testCommit)
		if !errors.Is(err, tt.err) || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	ref, ok := known.File("m.safetensors")
	if want := (FileRef{Repo: "a/b", Commit: testCommit, Path: "m.safetensors", Size: 10, SHA256: shaA}); !ok || ref != want {
		t.Errorf("got %+v", ref)
	}
	if _, ok := known.File("none"); ok {
		t.Error("found a file that is not there")
	}
}

// TestInfoEscapesWhatItAsksFor checks that a revision may have slashes, and that no repo name leads
// elsewhere.
func TestInfoEscapesWhatItAsksFor(t *testing.T) {
	w := script(says(200, `{"sha":"`+testCommit+`","siblings":[]}`))
	c, _ := testClient(t, w)
	if _, err := c.Info(t.Context(), "a/b", "refs/pr/1"); err != nil || w.Seen[0].URL.EscapedPath() != "/api/models/a/b/revision/refs%2Fpr%2F1" {
		t.Error(err, w.Seen[0].URL.EscapedPath())
	}
	for _, bad := range []string{"", "../a", "a/b/c", "a b/c", "a/b?x"} {
		if _, err := c.Info(t.Context(), bad, ""); err == nil || w.Count() > 1 {
			t.Errorf("repo %q was accepted", bad)
		}
	}
}

// TestTreeRefusesStrangeLinks also checks that it reads the hash of a large file in either form.
func TestTreeRefusesStrangeLinks(t *testing.T) {
	for name, link := range map[string]string{
		"other origin": "https://evil.test/api/models/a/b/tree/main?cursor=2",
		"other port":   "https://hub.test:8443/api/models/a/b/tree/main?cursor=2",
		"plain http":   "http://hub.test/api/models/a/b/tree/main?cursor=2",
	} {
		w := script(says(200, `[]`, `Link: <`+link+`>; rel="next"`))
		c, _ := testClient(t, w)
		if _, err := c.Tree(t.Context(), "a/b", "main"); !errors.Is(err, ErrNotHub) || w.Count() != 1 {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
	c, _ := testClient(t, script(says(200, `[{"type":"file","path":"y","oid":"g","size":9,"lfs":{"oid":"`+shaA+`","size":12},"xetHash":"x"}]`)))
	if tree, err := c.Tree(t.Context(), "a/b", "main"); err != nil || tree["y"] != (FileInfo{Path: "y", Size: 12, SHA256: shaA, BlobID: "g", XetHash: "x"}) {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestAnswerNeverTakesMoreThanItsShare checks that no server can send an answer of 64 MiB, the
// least memory budget.
func TestAnswerNeverTakesMoreThanItsShare(t *testing.T) {
	w := script(says(200, `{"name":"`+strings.Repeat("x", 17<<20)+`"}`))
	c, _ := testClient(t, w)
	if _, err := c.WhoAmI(t.Context()); !errors.Is(err, ErrTooLarge) || w.Count() != 1 || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("%d requests, %v", w.Count(), err)
	}
}

// TestATreeWithoutEndIsNeverTaken checks that endless pages, each with its own cursor, are limited
// by their bytes.
func TestATreeWithoutEndIsNeverTaken(t *testing.T) {
	n, oid := 0, strings.Repeat("a", 4<<20)
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		n++
		return reply(r, 200, fmt.Sprintf(`[{"type":"file","path":"%d","size":1,"oid":"%s"}]`, n, oid),
			fmt.Sprintf(`Link: <https://hub.test/next?cursor=%d>; rel="next"`, n)), nil
	}}
	c, _ := testClient(t, w)
	if _, err := c.Tree(t.Context(), "a/b", "main"); !errors.Is(err, ErrTooLarge) || n > 20 {
		t.Errorf("%d pages, %v", n, err)
	}
}
