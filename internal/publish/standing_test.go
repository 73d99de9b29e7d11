package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A fake is a target in memory: what its files hold, by path. It has versions as a repo has, where
// the content is what pins a file, or as a folder has.
type fake struct {
	files  map[string]string
	folder bool
}

func (f fake) listing() listing {
	versions := map[string]string{}
	for name := range f.files {
		if !f.folder || !strings.HasPrefix(name, "unlisted") { // a folder looks for what it knows
			versions[name], _ = f.version(name)
		}
	}
	if f.folder {
		return listing{"there", versions, nil, f}
	}
	onHub := map[string]names.File{}
	for name, content := range f.files {
		onHub[name] = file(name, content)
	}
	return listing{"there", versions, onHub, f}
}

func (f fake) version(name string) (string, error) {
	content, ok := f.files[name]
	if ok && f.folder {
		return "version of " + content, nil
	}
	return content, nil
}

func (f fake) read(_ context.Context, name string, _ int64) ([]byte, error) {
	return []byte(f.files[name]), nil
}

func (f fake) size(name string) int64 { return int64(len(f.files[name])) }

func (f fake) file(_ context.Context, name string) (names.File, error) {
	return file(name, f.files[name]), nil
}

func (f fake) has(_ context.Context, name, hash string) (bool, error) {
	return f.files[name] == hash || file(name, f.files[name]).SHA256 == hash, nil
}

func (f fake) open(context.Context, []ledger.Output, int64) (*model.DF11, error) {
	return nil, errors.ErrUnsupported
}

func (f fake) isResult(name string) bool { return f.files[name] != "mine" }

func file(name, content string) names.File {
	return names.File{Path: name, Size: int64(len(content)), SHA256: sumOf([]byte(content))}
}

// Plans by digest: the one of the run, and two others.
var (
	ours  = strings.Repeat("a", 64)
	older = strings.Repeat("b", 64)
	other = strings.Repeat("c", 64)
	dict  = plan.DictDigest(nil)
)

// Commits of the source: the one of the run, and an older one. The newest of another source is
// theirs.
const (
	newest = "1111111111111111111111111111111111111111"
	before = "2222222222222222222222222222222222222222"
	theirs = "3333333333333333333333333333333333333333"
)

// journal writes the journal of a plan. It lists files, as "path content". With a plus, a file is
// named in addition to the outputs; with a star, former conversions have left it; KEEPS is a
// folder's that stays. The source is "repo", or "repo@commit"; without a commit, it's "new" for a
// repo. Further words are other members of the head.
func journal(plan, source string, files ...string) string {
	repo, commit := at(source)
	head, lines := fmt.Sprintf(`{"version":1,"plan":%q,"commit":%q`, plan, commit), ""
	result := fmt.Sprintf(`"source":%q,"pattern_dict":%q`, repo, dict)
	layout := "transformers"
	for _, f := range files {
		name, content, _ := strings.Cut(f, " ")
		listed := fmt.Sprintf(`{"path":%q,"size":%d,"sha256":%q}`, strings.TrimLeft(name, "*+"), len(content), sumOf([]byte(content)))
		switch {
		case name == "LAYOUT":
			layout = content
		case name == "KEEPS":
			head += `,"keeps":true`
		case name == "FILE" || name == "FOLDER":
			result += fmt.Sprintf(`,%q:%q`, strings.ToLower(name), content)
		case name == "DICT":
			result = strings.Replace(result, dict, content, 1)
		case name[0] == '*':
			head += `,"former":[` + listed + `]`
		case name[0] == '+':
			lines += `{"named":` + listed + "}\n"
		default:
			lines += `{"output":` + listed + "}\n"
		}
	}
	return head + fmt.Sprintf(`,"result":{%s,"layout":%q}}`, result, layout) + "\n" + lines
}

// early writes a journal of version 3, of files that former conversions have left.
func early(plan, source string, files ...string) string {
	former := map[string]string{}
	for _, f := range files {
		name, content, _ := strings.Cut(f, " ")
		former[name] = sumOf([]byte(content))
	}
	list, _ := json.Marshal(former)
	return fmt.Sprintf(`{"version":3,"plan":%q,"source":%q,"former":%s}`, plan, source, list) + "\n"
}

// at takes a source apart.
func at(source string) (repo, commit string) {
	repo, commit, stated := strings.Cut(source, "@")
	switch {
	case stated || repo == "":
	case repo == "org/a":
		commit = newest
	default:
		commit = theirs
	}
	return repo, commit
}

// manifest writes a manifest, which lists files as journal does; those with a dash were kept.
// WEIGHTS is what the source held.
func manifest(digest, source string, files ...string) string {
	var list []string
	weights, layout, pattern := "weights", "transformers", dict
	if repo, _ := at(source); repo != "org/a" && repo != "" {
		weights = "weights of " + repo
	}
	for _, f := range files {
		name, content, _ := strings.Cut(f, " ")
		switch name {
		case "WEIGHTS":
			weights = content
		case "LAYOUT":
			layout = content
		case "DICT":
			pattern = content
		default:
			path, kept := strings.CutPrefix(name, "-")
			list = append(list, fmt.Sprintf(`{"path":%q,"kind":"copied","size":%d,"sha256":%q,"kept":%v}`, path, len(content), sumOf([]byte(content)), kept))
		}
	}
	repo, commit := at(source)
	return fmt.Sprintf(`{"schema_version":1,"plan":{"digest":%q,"layout":%q,"pattern_dict_sha256":%q,"rules":%d},`+
		`"source":{"repo":%q,"commit":%q,"files":[{"path":"model.safetensors","size":1,"sha256":%q,"integrity":"proof"}]},"files":[%s]}`,
		digest, layout, pattern, plan.Rules, repo, commit, sumOf([]byte(weights)), strings.Join(list, ","))
}

// whole is the finished result of the run, with changes: "" takes a file away.
func whole(change map[string]string) map[string]string {
	files := map[string]string{"model.safetensors": "rest", "head.safetensors": "head", "config.json": "{}", "README.md": "card",
		"df11.png": "png", "tokenizer.json": "tokens"}
	var list []string
	for name, content := range files {
		list = append(list, name+" "+content)
	}
	files["df11-manifest.json"] = manifest(ours, "org/a", list...)
	maps.Copy(files, change)
	maps.DeleteFunc(files, func(_, content string) bool { return content == "" })
	return files
}

// verdict sums up an inspection in words: files of ours, conflicts, and what else it found.
func verdict(in *Inspection, err error) string {
	var words []string
	add := func(word string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			words = append(words, word+" "+strings.Join(names, " "))
		}
	}
	if in != nil {
		by := map[Standing][]string{}
		for name, f := range in.Files {
			by[f.Standing] = append(by[f.Standing], name)
		}
		add("ours", by[Ours])
		add("shared", by[Shared])
		for _, name := range by[Equal] {
			add("kept", []string{name})
		}
	}
	if e := (*ConflictError)(nil); errors.As(err, &e) {
		add("overwritten", e.Overwritten)
		add("alike", e.Alike)
		add("read along", e.Files)
		if e.Of != "" {
			words = append(words, "of "+e.Of)
		}
	} else if err != nil {
		words = append(words, err.Error())
	}
	if in != nil && in.CardStays() {
		why, _, _ := strings.Cut(in.WhyCardStays(), " card of ")
		words = append(words, map[string]string{"the": "card stays", "our part of the": "edited card stays", "the front matter of the": "unreadable card stays"}[why])
	}
	if in != nil && in.Current {
		words = append(words, "current")
	}
	return strings.Join(words, ", ")
}

const (
	part   = ".df11/part.json"
	second = ".df11/second.json"
	state  = ".df11-convert/part.json"
	record = "df11-manifest.json"
	all    = "ours README.md config.json df11-manifest.json df11.png head.safetensors model.safetensors tokenizer.json"
)

// marked is a card as a run writes it.
var marked = string(metadata.MarkCard([]byte("---\nlicense: mit\n---\n\nours\n")))

// A site is the kind of a target.
type site int

const (
	inRepo site = iota
	forcedRepo
	inFolder
	forcedFolder
	workFolder
	nameless // a repo, for a source that no repo is known of
	local    // a repo, for a local source whose repo is known, but not its commit
	single   // a repo, for a layout whose loader reads one file by its name
)

// of makes the conversion of a run at a site, and what the site holds.
func (s site) of(files map[string]string) (*Conversion, place, fake) {
	p := &plan.Plan{Layout: catalog.Transformers, Config: "config.json", Carried: plan.Carried{Copied: []plan.File{{Path: "tokenizer.json", ETag: "tokens"}}},
		OutputFiles: []plan.OutputFile{{Path: "model.safetensors"}, {Path: "head.safetensors"}}}
	if s == single {
		p.Layout = catalog.ComfyUI
	}
	from := Origin{Repo: "org/a", Commit: newest, Source: answers{local: s == local}}
	if s == nameless || s == local {
		from.Commit = ""
	}
	if s == nameless {
		from.Repo = ""
	}
	if s == local {
		p.Copied[0].ETag, from.Local = "", true
	}
	c := NewConversion(p, from, "part", s == forcedRepo || s == forcedFolder)
	c.Digest = ours
	at := place{journal: part, force: c.Force, work: s == workFolder, folder: s == inFolder || s == forcedFolder}
	f := fake{files, s == inFolder || s == forcedFolder || s == workFolder}
	if f.folder {
		at.journal = state
	}
	return c, at, f
}

// answers is the source of these runs.
type answers struct{ local bool }

func (answers) Weights(context.Context) ([]names.File, error) {
	return []names.File{{Path: "model.safetensors", Size: 1, SHA256: sumOf([]byte("weights"))}}, nil
}

func (answers) NameNow(_ context.Context, repo string) (string, error) {
	return map[string]string{"org/old": "org/a"}[repo], nil
}

func (answers) HashAt(_ context.Context, commit, name string) (string, error) {
	return map[string]string{before + "NOTICE": "x", before + "notes.txt": "y"}[commit+name], nil
}

func (a answers) Sum(context.Context, string) (string, error) {
	if a.local {
		return sumOf([]byte("local tokens")), nil
	}
	return "", nil
}

func (answers) Made(context.Context, []ledger.Output, Opener) (bool, error) { return false, nil }

// TestWhoseAFileIs: the rule of ownership, for a run that begins.
func TestWhoseAFileIs(t *testing.T) {
	type files = map[string]string
	for _, tt := range []struct {
		what  string
		at    site
		there files
		want  string
	}{
		{"nothing", inRepo, nil, ""},
		{"files in no one's way", inRepo, files{"notes.md": "x", "q4.gguf": "x", "sub/config.json": "x", "sub/x.safetensors": "x", ".df11/x.md": "x"}, ""},
		{"a file of the result's name", inRepo, files{"head.safetensors": "x"}, "overwritten head.safetensors"},
		{"the very weights", inRepo, files{"head.safetensors": "head"}, "overwritten head.safetensors"},
		{"a config", inRepo, files{"config.json": "x"}, "overwritten config.json"},
		{"a picture", inRepo, files{"df11.png": "x"}, "overwritten df11.png"},
		{"other weights", inRepo, files{"x.safetensors": "x"}, "read along x.safetensors"},
		{"other weights, and one file is read", single, files{"x.safetensors": "x"}, ""},
		{"names that some systems can't tell from the result's", inRepo, files{"Tokenizer.json": "x", "readme.md": "x", "MODEL.safetensors": "x", "config.json/x": "x", "sub/readme.md": "x"}, "alike MODEL.safetensors Tokenizer.json config.json/x readme.md"},
		{"such a name in a folder", inFolder, files{"Tokenizer.json": "x"}, "alike Tokenizer.json"},
		{"such a name of ours", inRepo, files{record: manifest(older, "org/a", "Tokenizer.json x"), "Tokenizer.json": "x"}, "ours Tokenizer.json df11-manifest.json"},
		{"force, and such a name", forcedRepo, files{"readme.md": "x"}, "alike readme.md"},
		{"a card with our part", inRepo, files{"README.md": marked + "mine"}, "shared README.md"},
		{"a card with our part, edited", inRepo, files{"README.md": strings.Replace(marked, "ours", "mine", 1)}, "edited card stays"},
		{"a card with our part, and a broken front matter", inRepo, files{"README.md": strings.Replace(marked, "license: mit", "license: [", 1)}, "unreadable card stays"},
		{"a card that had our part", inRepo, files{"README.md": "ours\n"}, "card stays"},
		{"force, and a card with our part", forcedRepo, files{"README.md": marked + "mine"}, ""},
		{"the result, and more in its card", inRepo, whole(files{"README.md": marked + "mine"}), strings.Replace(all, "README.md ", "", 1) + ", shared README.md"},
		{"a card", inRepo, files{"README.md": "x"}, "card stays"},
		{"a tokenizer of the same bytes", inRepo, files{"tokenizer.json": "tokens"}, "kept tokenizer.json"},
		{"force, and a tokenizer of the same bytes", forcedRepo, files{"tokenizer.json": "tokens"}, "kept tokenizer.json"},
		{"another tokenizer", inRepo, files{"tokenizer.json": "x"}, "overwritten tokenizer.json"},
		{"a broken journal of our name", inRepo, files{part: "x"}, "overwritten .df11/part.json"},
		{"a broken journal", inRepo, files{second: "x"}, ""},
		{"a broken manifest", inRepo, files{record: "x", "head.safetensors": "head"}, "overwritten df11-manifest.json head.safetensors"},
		{"a manifest of a newer program", inRepo, files{record: `{"schema_version":2}`}, "there holds a result of a newer version of df11-convert: this one can't read its df11-manifest.json"},
		{"a manifest that names a file outside", inRepo, files{record: manifest(ours, "org/a", "../x x"), "config.json": "x"}, "overwritten config.json df11-manifest.json"},

		{"our journal", inRepo, files{part: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11/part.json head.safetensors"},
		{"our journal, and other bytes", inRepo, files{part: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "x"}, "ours .df11/part.json, overwritten head.safetensors"},
		{"our journal, and a stranger's bytes that it lists", inRepo, files{part: journal(ours, "org/a", "x.safetensors x"), "x.safetensors": "x"}, "ours .df11/part.json x.safetensors"},
		{"our journal, and weights that it doesn't list", inRepo, files{part: journal(ours, "org/a"), "x.safetensors": "x"}, "ours .df11/part.json, read along x.safetensors"},
		{"our journal, and a card that it names", inRepo, files{part: journal(ours, "org/a", "+README.md card"), "README.md": "card"}, "ours .df11/part.json README.md"},
		{"our journal, and a card that was edited", inRepo, files{part: journal(ours, "org/a", "+README.md card"), "README.md": "x"}, "ours .df11/part.json, card stays"},
		{"another part's journal", inRepo, files{second: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11/second.json head.safetensors"},
		{"two sums of one file", inRepo, files{part: journal(ours, "org/a", "+config.json x", "+config.json {}"), "config.json": "{}"}, "ours .df11/part.json config.json"},
		{"two journals, two sums", inRepo, files{part: journal(ours, "org/a", "head.safetensors x"), second: journal(older, "org/a", "head.safetensors head"), "head.safetensors": "x"}, "ours .df11/part.json .df11/second.json head.safetensors"},
		{"what former conversions have left", inRepo, files{part: journal(ours, "org/a", "*old.safetensors old"), "old.safetensors": "old"}, "ours .df11/part.json old.safetensors"},
		{"a torn journal", inRepo, files{part: journal(ours, "org/a", "head.safetensors head") + `{"output":{"path`, "head.safetensors": "head"}, "ours .df11/part.json head.safetensors"},
		{"a journal of a newer program", inRepo, files{part: strings.Replace(journal(ours, "org/a"), ":1", ":9", 1)}, "there holds a result of a newer version of df11-convert: this one can't read its .df11/part.json"},

		{"a former commit's journal", inRepo, files{part: journal(older, "org/a", "old.safetensors old"), "old.safetensors": "old"}, "ours .df11/part.json old.safetensors"},
		{"a former commit's manifest", inRepo, files{record: manifest(older, "org/a", "old.safetensors old", "notes.md x"), "old.safetensors": "old", "notes.md": "y"}, "ours df11-manifest.json old.safetensors"},
		{"a former commit's file, edited", inRepo, files{record: manifest(older, "org/a", "old.safetensors old"), "old.safetensors": "x"}, "ours df11-manifest.json, read along old.safetensors"},
		{"another model's journal", inRepo, files{part: journal(other, "org/b", "head.safetensors head"), "head.safetensors": "head"}, "overwritten .df11/part.json head.safetensors, of org/b"},
		{"another model's manifest", inRepo, files{record: manifest(other, "org/b", "head.safetensors head"), "head.safetensors": "head"}, "overwritten df11-manifest.json head.safetensors, of org/b"},
		{"another model's manifest, the same weights", inRepo, files{record: manifest(other, "org/b", "WEIGHTS weights", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},
		{"another name, the same commit", inRepo, files{second: journal(other, "org/b@"+newest, "old.safetensors old"), "old.safetensors": "old"}, "ours .df11/second.json old.safetensors"},
		{"the source's former name", inRepo, files{second: journal(other, "org/old", "old.safetensors old"), "old.safetensors": "old"}, "ours .df11/second.json old.safetensors"},
		{"the source's former name, another layout", inRepo, files{second: journal(other, "org/old", "LAYOUT diffusers", "old.safetensors old"), "old.safetensors": "old"}, "read along old.safetensors, of org/old"},
		{"a former name, and no commit", local, files{second: journal(other, "org/old", "old.safetensors old"), "old.safetensors": "old"}, "read along old.safetensors, of org/old"},
		{"a manifest without a dict", inRepo, files{record: manifest(older, "org/a@"+before, "DICT ", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},
		{"a local model's manifest, the same weights", inRepo, files{record: manifest(older, "", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},
		{"an early journal", inRepo, files{second: early(older, "org/a", "old.safetensors old"), "old.safetensors": "old"}, "ours .df11/second.json old.safetensors"},
		{"another model's early journal", inRepo, files{second: early(older, "org/b", "old.safetensors old"), "old.safetensors": "old"}, "read along old.safetensors, of org/b"},
		{"an early journal, no commit", local, files{second: early(older, "org/a", "old.safetensors old"), "old.safetensors": "old"}, "read along old.safetensors, of org/a (other weights, layout, or pattern dict)"},
		{"a journal of an unknown source", inRepo, files{second: journal(other, "", "head.safetensors head"), "head.safetensors": "head"}, "overwritten head.safetensors"},
		{"another plan, both sources unknown", nameless, files{second: journal(other, "", "head.safetensors head"), "head.safetensors": "head"}, "overwritten head.safetensors, of a local model (other weights)"},
		{"the same source, another file", inRepo, files{second: journal(older, "org/a", "FILE low.safetensors", "head.safetensors head"), "head.safetensors": "head"}, "overwritten head.safetensors, of org/a (of low.safetensors)"},
		{"the same source, another component", inRepo, files{second: journal(older, "org/a", "FOLDER transformer_2", "head.safetensors head"), "head.safetensors": "head"}, "overwritten head.safetensors, of org/a (of transformer_2)"},
		{"the same source, another layout", inRepo, files{record: manifest(older, "org/a@"+before, "LAYOUT diffusers", "head.safetensors head"), "head.safetensors": "head"}, "overwritten df11-manifest.json head.safetensors, of org/a (in the layout diffusers)"},
		{"the same source, another dict", inRepo, files{record: manifest(older, "org/a@"+before, "DICT x", "head.safetensors head"), "head.safetensors": "head"}, "overwritten df11-manifest.json head.safetensors, of org/a (with another pattern dict)"},
		{"an older commit, other weights", inRepo, files{record: manifest(older, "org/a@"+before, "WEIGHTS x", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},
		{"no commit, other weights", local, files{record: manifest(ours, "org/a", "WEIGHTS x", "old.safetensors old"), "old.safetensors": "old"}, "overwritten df11-manifest.json, read along old.safetensors, of org/a (other weights)"},
		{"no commit, the same weights", local, files{record: manifest(older, "org/a", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},
		{"two local models, other weights", nameless, files{record: manifest(ours, "", "WEIGHTS x", "head.safetensors head"), "head.safetensors": "head"}, "overwritten df11-manifest.json head.safetensors, of a local model (other weights)"},
		{"a kept file that the result has no more", inRepo, files{record: manifest(older, "org/a@"+before, "-LICENSE mine", "NOTICE theirs"), "LICENSE": "mine", "NOTICE": "theirs"}, "ours NOTICE df11-manifest.json"},
		{"a kept file that would change", inRepo, files{record: manifest(older, "org/a@"+before, "-tokenizer.json old"), "tokenizer.json": "old"}, "ours df11-manifest.json, overwritten tokenizer.json"},
		{"a kept file that stays", inRepo, files{record: manifest(older, "org/a@"+before, "-tokenizer.json tokens"), "tokenizer.json": "tokens"}, "ours df11-manifest.json, kept tokenizer.json"},
		{"a user's file with the bytes of the new commit", inRepo, files{record: manifest(older, "org/a@"+before, "tokenizer.json tokenX"), "tokenizer.json": "tokens"}, "ours df11-manifest.json, kept tokenizer.json"},
		{"a local source's tokenizer", local, files{"tokenizer.json": "local tokens"}, "kept tokenizer.json"},
		{"a card with the bytes of a local source's", local, files{"README.md": "local tokens"}, "card stays"},
		{"another tokenizer than a local source's", local, files{"tokenizer.json": "tokens"}, "overwritten tokenizer.json"},
		{"our plan, both sources unknown", nameless, files{second: journal(ours, "", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11/second.json head.safetensors"},

		{"the result", inRepo, whole(nil), all + ", current"},
		{"the result, and the user's files", inRepo, whole(files{"notes.md": "x"}), all + ", current"},
		{"the result, its card edited", inRepo, whole(files{"README.md": "x"}), strings.Replace(all, "README.md ", "", 1) + ", card stays, current"},
		{"the result, its card gone", inRepo, whole(files{"README.md": ""}), strings.Replace(all, "README.md ", "", 1)},
		{"the result, a file gone", inRepo, whole(files{"head.safetensors": ""}), strings.Replace(all, "head.safetensors ", "", 1)},
		{"the result, a file edited", inRepo, whole(files{"config.json": "x"}), strings.Replace(all, "config.json ", "", 1) + ", overwritten config.json"},
		{"the result, and a journal", inRepo, whole(files{part: journal(ours, "org/a")}), strings.Replace(all, "ours", "ours .df11/part.json", 1)},
		{"the result, and other weights", inRepo, whole(files{"x.safetensors": "x"}), all + ", read along x.safetensors, current"},

		{"force, and a file of the result's name", forcedRepo, files{"head.safetensors": "x"}, ""},
		{"force, and other weights", forcedRepo, files{"x.safetensors": "x"}, "read along x.safetensors"},
		{"force, and a card", forcedRepo, files{"README.md": "x"}, ""},
		{"force, and another model's journal", forcedRepo, files{part: journal(other, "org/b", "head.safetensors head"), "head.safetensors": "head"}, ""},
		{"force, a former commit's, and other weights", forcedRepo, files{record: manifest(older, "org/a", "old.safetensors old"), "old.safetensors": "old", "x.safetensors": "x"}, "ours df11-manifest.json old.safetensors, read along x.safetensors"},
		{"force, and another model's result", forcedRepo, files{record: manifest(other, "org/b", "head.safetensors b", "old.safetensors old", "NOTICE b", "-LICENSE mine"), "head.safetensors": "b", "old.safetensors": "old", "NOTICE": "b", "LICENSE": "mine"},
			"ours NOTICE df11-manifest.json head.safetensors old.safetensors"},
		{"force, and another model's result, edited", forcedRepo, files{record: manifest(other, "org/b", "old.safetensors old", "NOTICE b"), "old.safetensors": "x", "NOTICE": "x"},
			"ours df11-manifest.json, read along old.safetensors, of org/b"},
		{"force, and other weights of a local model", forcedFolder, files{record: manifest(ours, "", "WEIGHTS x", "old.safetensors old"), "old.safetensors": "old"}, "ours df11-manifest.json old.safetensors"},

		{"a folder's tokenizer of the same bytes", inFolder, files{"tokenizer.json": "tokens"}, "kept tokenizer.json"},
		{"a folder's other tokenizer", inFolder, files{"tokenizer.json": "x"}, "overwritten tokenizer.json"},
		{"a folder's file that only its journal names", inFolder, files{state: journal(ours, "org/a", "unlisted.safetensors x"), "unlisted.safetensors": "x"}, "ours .df11-convert/part.json unlisted.safetensors"},
		{"a folder's files that a forged journal names", inFolder, files{state: journal(ours, "org/a", "unlisted.md x", "sub/x.safetensors mine", "+__init__.py "), "unlisted.md": "x", "sub/x.safetensors": "mine", "__init__.py": ""}, "ours .df11-convert/part.json"},
		{"a folder's files that a forged manifest names", inFolder, files{record: manifest(ours, "org/a", "notes.txt x", "sub/deep.txt x", "x.safetensors mine", "NOTICE x"), "notes.txt": "x", "sub/deep.txt": "x", "x.safetensors": "mine", "NOTICE": "x"}, "ours df11-manifest.json, read along x.safetensors"},
		{"force, and a folder's files that a forged manifest names", forcedFolder, files{record: manifest(other, "org/b", "notes.txt x", "sub/deep.txt x", "x.safetensors mine", "NOTICE x"), "notes.txt": "x", "sub/deep.txt": "x", "x.safetensors": "mine", "NOTICE": "x"}, "ours df11-manifest.json, read along x.safetensors, of org/b"},
		{"a folder's files that the source's earlier commit had", inFolder, files{record: manifest(older, "org/a@"+before, "notes.txt x", "NOTICE x", "vocab.json x"), "notes.txt": "x", "NOTICE": "x", "vocab.json": "x"}, "ours NOTICE df11-manifest.json vocab.json"},
		{"a folder's other weights, after force", inFolder, files{state: journal(ours, "org/a", "head.safetensors head"), "x.safetensors": "x"}, "ours .df11-convert/part.json, read along x.safetensors"},
		{"a folder where another model's run has made nothing", inFolder, files{state: journal(other, "org/b")}, "ours .df11-convert/part.json"},
		{"a folder where another model's run has stopped", inFolder, files{state: journal(other, "org/b", "old.safetensors old"), "old.safetensors": "old"}, "overwritten .df11-convert/part.json, read along old.safetensors, of org/b"},
		{"force, and a folder where another model's run has stopped", forcedFolder, files{state: journal(other, "org/b", "old.safetensors old"), "old.safetensors": "old"}, "ours .df11-convert/part.json old.safetensors"},
		{"force, and a repo with the journal of another model's folder", forcedRepo, files{state: journal(other, "org/b", "old.safetensors old"), "old.safetensors": "old"}, "read along old.safetensors, of org/b"},
		{"a repo where another model's run has made nothing", inRepo, files{part: journal(other, "org/b")}, "overwritten .df11/part.json, of org/b"},
		{"a folder that a run has worked in", inFolder, files{state: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11-convert/part.json head.safetensors"},
		{"a work folder", workFolder, files{state: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11-convert/part.json head.safetensors"},
		{"a work folder of an older commit", workFolder, files{state: journal(older, "org/a", "head.safetensors head"), "head.safetensors": "head"}, "ours .df11-convert/part.json head.safetensors"},
		{"a work folder of another model", workFolder, files{state: journal(other, "org/b", "head.safetensors head"), "head.safetensors": "head"}, "overwritten .df11-convert/part.json head.safetensors, of org/b"},
		{"a work folder where a result stays", workFolder, files{state: journal(ours, "org/a", "KEEPS", "head.safetensors head"), "head.safetensors": "head"}, "overwritten .df11-convert/part.json head.safetensors"},
		{"a work folder's spool without a journal", workFolder, files{".df11-convert/spool": "x"}, "overwritten .df11-convert/spool"},
		{"a work folder's same tokenizer", workFolder, files{"tokenizer.json": "tokens"}, "overwritten tokenizer.json"},
		{"a work folder's other weights", workFolder, files{"x.safetensors": "x"}, ""},
	} {
		c, at, s := tt.at.of(tt.there)
		if got := verdict(c.inspect(t.Context(), at, s.listing(), nil)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.what, got, tt.want)
		}
	}
}

// TestWhatForceReplaces: without Force, a conflict says which files a run with Force would refuse,
// too.
func TestWhatForceReplaces(t *testing.T) {
	result := map[string]string{record: manifest(other, "org/b", "old.safetensors old", "Tokenizer.json b", "mine.safetensors old"),
		"old.safetensors": "old", "Tokenizer.json": "b"}
	more := maps.Clone(result)
	more["mine.safetensors"], more["x.safetensors"], more["readme.md"] = "x", "x", "x"
	for _, at := range []site{inRepo, inFolder, forcedRepo, forcedFolder} {
		for stay, there := range map[string]map[string]string{"": result, "mine.safetensors readme.md x.safetensors": more} {
			c, place, s := at.of(there)
			_, err := c.inspect(t.Context(), place, s.listing(), nil)
			conflict, refused := errors.AsType[*ConflictError](err)
			if !refused {
				conflict = &ConflictError{}
			}
			slices.Sort(conflict.Stay)
			got := strings.Join(conflict.Stay, " ")
			if got != stay || refused != (stay != "" || !c.Force) || (conflict.Hint() == hint.Hint{}) != (stay == "") {
				t.Errorf("%v: %q stay, want %q: %v", at, got, stay, err)
			}
		}
	}
}

// TestWhatHasComeSince: the same rule for what others have changed since the run looked last.
func TestWhatHasComeSince(t *testing.T) {
	type files = map[string]string
	begun := files{part: journal(ours, "org/a", "head.safetensors head"), "head.safetensors": "head", "README.md": "x"}
	const still = "ours .df11/part.json head.safetensors, card stays"
	taken := "since this run began, a conversion of %s has written to there"
	for _, tt := range []struct {
		what string
		at   site
		come files // "" takes a file away
		want string
	}{
		{"nothing", inRepo, nil, still},
		{"a user's file", inRepo, files{"notes.md": "x"}, still},
		{"other weights", inRepo, files{"x.safetensors": "x"}, "ours .df11/part.json head.safetensors, read along x.safetensors, card stays"},
		{"other weights, after force", forcedRepo, files{"x.safetensors": "x"}, "ours .df11/part.json head.safetensors, read along x.safetensors"},
		{"a config, after force", forcedRepo, files{"config.json": "x"}, "ours .df11/part.json head.safetensors, overwritten config.json"},
		{"a card, after force", forcedRepo, files{"README.md": "y"}, still},
		{"an edit of our file", inRepo, files{"head.safetensors": "x"}, "ours .df11/part.json, overwritten head.safetensors, card stays"},
		{"our file is gone", inRepo, files{"head.safetensors": ""}, "ours .df11/part.json, card stays"},
		{"our journal is gone", inRepo, files{part: ""}, "ours head.safetensors, card stays"},
		{"the card is gone", inRepo, files{"README.md": ""}, "ours .df11/part.json head.safetensors"},
		{"another model's journal", inRepo, files{second: journal(other, "org/b")}, fmt.Sprintf(taken, "org/b")},
		{"another model's manifest, after force", forcedRepo, files{record: manifest(other, "org/b")}, fmt.Sprintf(taken, "org/b")},
		{"a journal of an unknown source", inRepo, files{second: journal(other, "")}, fmt.Sprintf(taken, "another model")},
		{"another commit's journal", inRepo, files{second: journal(older, "org/a")}, fmt.Sprintf(taken, "org/a at another commit or with other flags")},
		{"another commit's manifest", inRepo, files{record: manifest(older, "org/a")}, fmt.Sprintf(taken, "org/a at another commit or with other flags")},
		{"another part's journal", inRepo, files{second: journal(ours, "org/a", "model.safetensors rest"), "model.safetensors": "rest"}, "ours .df11/part.json .df11/second.json head.safetensors model.safetensors, card stays"},
		{"our plan's journal with other bytes", inRepo, files{second: journal(ours, "org/a", "model.safetensors x")}, "ours .df11/part.json .df11/second.json head.safetensors, card stays"},
		{"a newer program's manifest, after force", forcedRepo, files{record: `{"schema_version":2}`}, "there holds a result of a newer version of df11-convert: this one can't read its df11-manifest.json"},
		{"a broken journal", inRepo, files{second: "x"}, still},
		{"a broken journal of our name", inRepo, files{part: "x"}, "ours head.safetensors, overwritten .df11/part.json, card stays"},
	} {
		c, at, s := tt.at.of(maps.Clone(begun))
		last, err := c.inspect(t.Context(), at, s.listing(), nil)
		if err != nil {
			t.Fatal(err)
		}
		before := verdict(last, nil)
		maps.Copy(s.files, tt.come)
		maps.DeleteFunc(s.files, func(_, content string) bool { return content == "" })
		if got := verdict(c.inspect(t.Context(), at, s.listing(), last)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.what, got, tt.want)
		}
		if after := verdict(last, nil); after != before {
			t.Errorf("%s: an inspection was %s and is %s", tt.what, before, after)
		}
	}
}

// TestAuthorOfALocalSourcesClaim checks whose a claim is of weights that no commit pins: a
// journal's counts if all its outputs that are there have the digests that this plan gives them. A
// manifest lists the SHA-256 of the weights, and digests cover only samples of these, so if the
// weights differ, equal digests change nothing.
func TestAuthorOfALocalSourcesClaim(t *testing.T) {
	const head = "head.safetensors"
	digest, another := sumOf([]byte("digest")), sumOf([]byte("another"))
	weights := func(content string) []names.File {
		return []names.File{{Path: "model.safetensors", Size: 1, SHA256: sumOf([]byte(content))}}
	}
	for what, tt := range map[string]struct {
		outputs map[string]string // digests, by path
		others  []names.File
		weights []names.File // of a manifest
		early   bool
		want    author
	}{
		"a journal's output":            {outputs: map[string]string{head: digest}, want: sameWeights},
		"another digest":                {outputs: map[string]string{head: another}, want: stranger},
		"one of two digests":            {outputs: map[string]string{head: digest, "model.safetensors": another}, want: stranger},
		"no digest":                     {outputs: map[string]string{head: ""}, want: stranger},
		"an output of no plan":          {outputs: map[string]string{head: digest, "x.safetensors": digest}, want: stranger},
		"nothing at all":                {want: sameWeights},
		"a file next to no output":      {others: []names.File{file("config.json", "{}")}, want: stranger},
		"an early journal that differs": {outputs: map[string]string{head: digest}, early: true, want: stranger},
		"a manifest of these weights":   {outputs: map[string]string{head: another}, weights: weights("weights"), want: sameWeights},
		"a manifest of other weights":   {outputs: map[string]string{head: digest}, weights: weights("x"), want: stranger},
		"a manifest that lists no sum":  {outputs: map[string]string{head: digest}, weights: []names.File{{Path: "model.safetensors", Size: 1}}, want: stranger},
	} {
		c, _, s := local.of(map[string]string{head: "head", "model.safetensors": "rest"})
		c.Digests = map[string]string{head: digest, "model.safetensors": digest}
		claim := ledger.ReadJournal([]byte(journal(older, "org/a@")))
		claim.Others, claim.Weights, claim.Prerelease = tt.others, tt.weights, tt.early
		for path, d := range tt.outputs {
			claim.Outputs[path] = ledger.Output{Path: path, SHA256: sumOf([]byte(path)), Digest: d}
		}
		if got, err := c.author(t.Context(), claim, s); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, tt.want)
		}
	}
}

// TestWhatForceRemoves checks that a refusal names what a run with Force would remove: the files of
// the other result that are as its manifest lists them, in a folder too, where the list is short.
func TestWhatForceRemoves(t *testing.T) {
	for _, at := range []site{inRepo, inFolder} {
		c, place, s := at.of(map[string]string{record: manifest(other, "org/b", "old.safetensors old", "unlisted.safetensors b", "vocab.json b", "head.safetensors b", "gone.safetensors b"),
			"old.safetensors": "old", "unlisted.safetensors": "edited", "vocab.json": "edited", "head.safetensors": "b"})
		_, err := c.inspect(t.Context(), place, s.listing(), nil)
		conflict, _ := errors.AsType[*ConflictError](err)
		if conflict == nil || !slices.Equal(conflict.Removed, []string{"old.safetensors"}) {
			t.Errorf("site %v: %+v", at, conflict)
		}
	}
}

// TestClaimsOfALocalSource checks that a run takes over no outputs of an earlier commit of a local
// source, whose digests cover only samples of the weights. A repo's digests cover all of them.
func TestClaimsOfALocalSource(t *testing.T) {
	for at, want := range map[site]int{inRepo: 1, local: 0} {
		c, place, s := at.of(map[string]string{record: manifest(older, "org/a@"+before, "WEIGHTS x", "head.safetensors head"), "head.safetensors": "head"})
		c.From.Commit = newest
		in, err := c.inspect(t.Context(), place, s.listing(), nil)
		if err != nil || len(in.claims) != want || in.Files["head.safetensors"].Standing != Ours {
			t.Errorf("site %v: %d claims, %v", at, len(in.claims), err)
		}
	}
}

// TestFormerNames checks that an output of an earlier program gets its present name only if it's
// the same output: its digest is the one that the former name had, or the claim has no digests at
// all and is of the same source files.
func TestFormerNames(t *testing.T) {
	const now, was, third = "remainder.safetensors", "model.safetensors", "head.safetensors"
	former, present := sumOf([]byte("former")), sumOf([]byte("present"))
	for what, tt := range map[string]struct {
		outputs map[string]string // digests, by path
		want    string            // the digest that the present name has; "none" without it
		from    string
	}{
		"the former digest": {map[string]string{was: former}, present, was},
		"another digest":    {map[string]string{was: present}, "none", ""},
		"no digest":         {map[string]string{was: "", third: former}, "none", ""},
		"no digest at all":  {map[string]string{was: ""}, present, was},
		"both names":        {map[string]string{was: former, now: former}, former, ""},
		"neither":           {map[string]string{third: former}, "none", ""},
	} {
		c, _, _ := inRepo.of(nil)
		c.Digests = map[string]string{now: present}
		c.prerelease = map[string]plan.OutputID{now: {Path: was, Digest: former}}
		claim := ledger.ReadJournal([]byte(journal(older, "org/a")))
		for path, d := range tt.outputs {
			claim.Outputs[path] = ledger.Output{Path: path, Digest: d}
		}
		list := len(claim.Outputs)
		got, err := c.translate(t.Context(), claim)
		o, listed := got.Outputs[now]
		if err != nil || listed != (tt.want != "none") || listed && (o.Digest != tt.want || o.From != tt.from || o.Path != now) {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
		if len(claim.Outputs) != list {
			t.Errorf("%s: the claim itself has changed", what)
		}
	}
}

// TestFolderHoldsWhatItsFilesAre checks that an output whose path holds another file of ours isn't
// held: former bytes under the name of an output are ours, and not the output.
func TestFolderHoldsWhatItsFilesAre(t *testing.T) {
	const head = "head.safetensors"
	for _, at := range []site{inRepo, inFolder} {
		c, place, s := at.of(map[string]string{head: "old"})
		s.files[place.journal] = journal(ours, "org/a", "*"+head+" old", head+" head")
		in, err := c.inspect(t.Context(), place, s.listing(), nil)
		if err != nil || in.Files[head].Standing != Ours || in.Holds(file(head, "head")) || !in.Holds(file(head, "old")) || in.Holds(names.File{Path: head}) {
			t.Errorf("site %v: %+v, %v", at, in, err)
		}
	}
}
