package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestListsAreExplained checks that a list of a wrong form is refused in words for people, with the
// line.
func TestListsAreExplained(t *testing.T) {
	inGo := regexp.MustCompile(`!!|cannot unmarshal|\b(seq|str|bool|struct|type|strconv|nil)\b|main\.|expected|unmarshal|found|yaml:|scan|pars`)
	for list, want := range map[string]string{
		"- org/base\n":                               "line 1: write models: above the entries",
		"hello\n":                                    `line 1: "hello" is no list of models`,
		"models: a/b\n":                              "line 1: models isn't a list: put a dash before each model",
		"models: {a: b}\n":                           "line 1: models isn't a list",
		"models:\n- src: a/b\n":                      `line 2: unknown member "src"; an entry has source, revision, component`,
		"models: [a/b]\nextra: 1\n":                  `line 2: unknown member "extra": a list has only models`,
		"models:\n- source: [a]\n":                   "line 2: source isn't a text",
		"models:\n- [a/b]\n":                         "line 2: an entry is a list: want a model, such as org/name",
		"models:\n- source: a/b\n  private: maybe\n": `line 3: private is "maybe": want true or false`,
		"models:\n- source: a/b\n  source: c/d\n":    "line 3: source is there twice",
		"models:\n\t- a/b\n":                         "line 2 begins with a tab: use spaces",
		"models: [a/b\n":                             "line 1: [ has no ]",
		"models:\n- {source: a/b\n- c/d\n":           "line 2: { has no }",
		"models:\n- source: a/b\n   layout: x\n":     "line 3: a colon can't be there: put the value in quotes, or check the indentation",
		"models:\n- a/b\n- source: c/d\n - e/f\n":    "line 4: it isn't indented like the lines above it",
		"models:\n- source: a/b: c\n":                "line 2: a colon can't be there",
		"models:\n- a/b\n- \"c/d\n- e/f\n":           "line 3: a quotation mark has no other",
		"models:\n- a/b\n- @c/d\n":                   "line 3: a value that begins with @, %, or ` needs quotes",
		"models:\n- a/b\n- *\n":                      "line 3 can't be read as YAML",
		"models:\n- a/b\nsource\n":                   "line 3: a colon is missing",
		"models:\n- a/b\n- \x01\n":                   "line 3: it has a control character",
		"models:\n- a/b\n- \xff\n":                   "line 3: it isn't UTF-8 text",
		"models:\n- a/b\nmodels:\n- c/d\n":           "line 3: models is there twice",
		"models: &m [*m]\n":                          "line 1: an entry is a list",
		"models: [\na/b]\nx: *b\n":                   "line 3: a value that begins with * needs quotes",
		"":                                           "it has no models",
		"models:\n- a/b\n-\n- c/d\n":                 "line 3: an entry is empty",
	} {
		name := filepath.Join(t.TempDir(), "list.yaml")
		world.Must(t, os.WriteFile(name, []byte(list), 0o600))
		_, err := readList(t.Context(), name)
		if err == nil || !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(err.Error()) {
			t.Errorf("%q: the error is %v, want %s", list, err, want)
		} else if word := inGo.FindString(err.Error()[len(name):]); word != "" {
			t.Errorf("%q: %v speaks Go: %q", list, err, word)
		}
	}
}

// TestDictsLieNextToTheList checks that the path of a pattern dict begins at the list's folder, not
// at the current one.
func TestDictsLieNextToTheList(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	list := filepath.Join(dir, "models.yaml")
	world.Write(t, list, "models: [{source: org/a, pattern-dict: dicts/a.json}, {source: org/b, pattern-dict: /b.json}, org/c]")
	models, err := readList(t.Context(), list)
	if err != nil || models[0].Dict != filepath.Join(dir, "dicts/a.json") || models[1].Dict != "/b.json" || models[2].Dict != "" {
		t.Errorf("%+v, %v", models, err)
	}
}
