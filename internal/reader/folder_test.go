package reader

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// small are the small files of the folder that TestFolder sorts.
var small = map[string]string{
	"config.json": `{"auto_map": {"AutoConfig": "configuration_x.XConfig", "AutoModel": "modeling_x.XModel", "AutoModelForCausalLM": "org/other--modeling_y.YModel"},
		"custom_pipelines": {"task": {"impl": "pipeline_x.XPipeline"}}}`,
	"tokenizer_config.json": `{"auto_map": {"AutoTokenizer": ["tokenization_x.XTokenizer", null]}}`,
	"modeling_x.py":         "from .layers import Layer\nfrom . import helpers, shapes as s\nfrom .deep.inner import q\nimport torch\nfrom .missing import y\n    from .lazy import z\n",
	"layers.py":             "from .modeling_x import back\nfrom  .sub.attention import A\n",
	"model_index.json":      `{"_class_name": ["pipeline_own", "Own"], "vae": ["diffusers", "AutoencoderKL"], "tokenizer": ["transformers", "T5Tokenizer"], "scheduler": ["own_scheduler", "S"], "unused": [null, null], "transformer": ["diffusers", "X"], "../up": ["a", "b"]}`,
	"modules.json":          `[{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Own", "type": "own_module.Own"}]`,
	".gitignore":            "# private\nsecrets.json\n/ignored_module.py\ndata/\nunet/\n*.private.json\n!kept.private.json\nvocab.txt\nassets/**/draft?.png\n",
	"vae/.gitignore":        "preprocessor_config.json\n",
	"README.md":             "![a](assets/a.png) <img width=3 src='./b.jpg'> ![out](../outside.png) [text](notes.md) ![remote](https://x/y.png)\n![draft](assets/new/draft1.png) ![key](id_rsa)",
}

// TestFolder checks for many files of a local folder whether they come along: only those that a
// reader of the model opens, and of these none that is hidden or that a .gitignore names.
func TestFolder(t *testing.T) {
	const copied, part, stays, left, withheld, lost = Copied, Part, Stays, Left, Withheld, Lost
	want := map[string]Fate{
		// configs, tokenizers, processors
		"generation_config.json": copied, "tokenizer.json": copied, "tokenizer_config.json": copied,
		"special_tokens_map.json": copied, "added_tokens.json": copied, "vocab.json": copied, "merges.txt": copied,
		"spiece.model": copied, "tokenizer.model": copied, "tokenizer.model.v3": copied, "qwen.tiktoken": copied,
		"preprocessor_config.json": copied, "processor_config.json": copied, "video_preprocessor_config.json": copied,
		"chat_template.jinja": copied, "chat_template.json": copied, "additional_chat_templates/tool_use.jinja": copied,
		"model_index.json": copied, "modules.json": copied, "sentence_bert_config.json": copied,
		"config_sentence_transformers.json": copied, "custom_generate/generate.py": copied,
		// modules of auto_map, with what they import
		"configuration_x.py": copied, "modeling_x.py": copied, "tokenization_x.py": copied, "pipeline_x.py": copied,
		"layers.py": copied, "helpers.py": copied, "shapes.py": copied, "lazy.py": copied, "sub/attention.py": copied, "deep/inner.py": copied,
		"pipeline_own.py": copied, "scheduler/own_scheduler.py": copied, "own_module.py": copied,
		"modeling_y.py": stays, "train.py": stays, "other.py": stays, "scheduler/train.py": stays, "setup.sh": stays,
		// parts
		"vae/config.json": copied, "vae/diffusion_pytorch_model.safetensors": part, "tokenizer/spiece.model": copied,
		"scheduler/scheduler_config.json": copied, "1_Pooling/config.json": copied, "2_Own/model.safetensors": part,
		"unused/config.json": copied, "extra/config.json": stays, "checkpoint-5/config.json": stays,
		"checkpoint-5/model.safetensors": stays, "lora/adapter_model.safetensors": stays, "lora/adapter_config.json": stays,
		// for people
		"LICENSE": copied, "NOTICE.txt": copied, "vae/LICENSE": copied, "USE_POLICY.md": copied,
		"assets/a.png": copied, "b.jpg": copied, "c.png": stays, "notes.md": stays, "assets/LICENSE": stays,
		"LICENSE-MODEL": copied, "License.pdf": copied, "license_key.txt": stays, "LICENSE.key": stays, "licenses.db": stays,
		"license.lic": stays, "COPYING.secret": stays, "NOTICE_TO_LEGAL.docx": stays, "LICENSE.": stays, "LICENSE.md.bak": stays,
		// named by .gitignore: the pipeline doesn't load without these weights
		"unet/diffusion_pytorch_model.safetensors": lost, "unet/config.json": stays, "unet/mine.safetensors": stays,
		// named by .gitignore
		"vocab.txt": withheld, "secrets.json": stays, "vae/preprocessor_config.json": withheld, "data/tokenizer.json": stays,
		"assets/new/draft1.png": stays, "x.private.json": stays, "kept.private.json": stays,
		// private
		".env": stays, ".netrc": stays, ".python_history": stays, ".msc": stays, ".tokenizer.json": stays,
		"token": stays, "hf_token.txt": stays, "id_rsa": stays, "id_rsa.pub": stays, "nohup.out": stays, "train.log": stays,
		"wandb/run-1/config.yaml": stays, "wandb/config.json": stays, "runs/events.out.tfevents.1": stays,
		"__pycache__/m.cpython-311.pyc": stays, "venv/bin/activate": stays, "venv/lib/LICENSE": stays,
		"venv/lib/transformers/tokenizer.json": stays, "data/train.jsonl": stays, "Thumbs.db": stays, "desktop.ini": stays,
		"requirements.txt": stays, "Dockerfile": stays, "trainer_state.json": stays, "all_results.json": stays,
		"customers.npz": stays, "backup.tar": stays, "secret.pt": stays, "training_args.bin": stays, "optimizer.pt": stays,
		"mine.gguf": stays, "onnx/model.onnx": stays, "notes.docx": stays, "key.pem": stays, "credentials.json": stays,
		"../escape.json": stays, "a\nb.json": stays, "vae/.env": stays, "vae/notes.txt": stays,
		// what a conversion replaces, or never copies
		"README.md": left, ".gitattributes": left, "pytorch_model.bin": left,
		"model.fp16.safetensors": left, "adapter_model.safetensors": lost,
		// whose names may say too much
		".gitignore": stays, "._tokenizer.json": stays, "vae/._config.json": stays, ".DS_Store": stays, "clients/acme-merger/.DS_Store": stays,
		"vae/.gitattributes": stays, ".gitkeep": stays, ".gitlab-acme.yml": stays, ".cache/acme": stays, ".df11-acme": stays,
	}
	var paths []string
	for p := range want {
		paths = append(paths, p)
	}
	for p := range small {
		if _, ok := want[p]; !ok {
			paths = append(paths, p)
		}
	}
	read := func(name string) []byte { return []byte(small[name]) }
	o := NewOriginal(catalog.Diffusers, "transformer", []string{"vae", "unet", "tokenizer", "scheduler"}, paths)
	o.Folder = NewFolder(Files{Paths: paths, Read: read}, nil)
	for p, want := range want {
		if got, why := o.Fate(p); got != want {
			t.Errorf("%s: got %d (%s), want %d", p, got, why, want)
		}
	}
	include := []string{"data/", "*.npz", "/.env", "notes.md", "venv/**/activate", "lora/", "vocab.txt", "x.gguf", "id_rsa*"}
	o.Folder = NewFolder(Files{Paths: paths, Read: read}, include)
	for p, want := range map[string]Fate{
		"data/train.jsonl": copied, "data/tokenizer.json": copied, ".env": copied, "vae/.env": stays, "notes.md": copied,
		"venv/bin/activate": copied, "lora/adapter_model.safetensors": part, "vocab.txt": copied, "id_rsa.pub": copied,
		"token": stays, "README.md": left, "wandb/config.json": stays,
		"customers.npz": left, // weights that no part of the pipeline opens
	} {
		if got, why := o.Fate(p); got != want {
			t.Errorf("%s, included: got %d (%s), want %d", p, got, why, want)
		}
	}
	if got := o.Folder.Unmatched(include, paths); got != "x.gguf" {
		t.Errorf("%q matches nothing", got)
	}
}

// TestNamesThatStayArePrivate checks for many names and places that a conversion of a folder names
// no file that stays there, unless it has a name that many models have, in a folder that the model
// names.
func TestNamesThatStayArePrivate(t *testing.T) {
	known := slices.Concat(slices.Collect(maps.Keys(opened)), slices.Collect(maps.Keys(notices)), []string{".gitattributes", ".gitignore", ".gitkeep",
		".DS_Store", ".cache", "._tokenizer.json", ".df11-convert", "README.md", "config.json", "df11-manifest.json", "adapter_model.safetensors", "adapter_config.json",
		"model.safetensors", "model-00001-of-00002.safetensors", "model.fp16.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.safetensors", "qwen.tiktoken",
		"model.safetensors.index.json", "optimizer.pt", "consolidated.pth", "tokenizer.model.v3", "sentence_bert_config.json", "model.onnx", "tf_model.h5", "x.gguf"})
	var paths []string
	for _, name := range known {
		stem, end := name, ""
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			stem, end = name[:i], name[i:]
		}
		for _, private := range []string{"acme" + name, "acme." + name, name + "acme", name + ".acme", stem + "-acme" + end, stem + ".acme" + end, ".acme/" + name, "." + "acme-" + name} {
			paths = append(paths, private, "vae/"+private, "original/"+private, "1_Pooling/"+private)
		}
		for _, dir := range []string{"acme", "vae/acme", "2_acme", "2_acme/x", "original/acme", "runs/acme", "checkpoint-1/acme", "onnx/acme", ".git/acme", "acme/._x"} {
			paths = append(paths, dir+"/"+name)
		}
	}
	for _, ignored := range []string{"", "*acme*\n", "*\n", "2_*\nqwen*"} {
		texts := map[string]string{"model_index.json": `{"vae": ["a", "B"], "transformer": ["a", "B"]}`, "modules.json": `[{"path": "1_Pooling"}]`, ".gitignore": ignored}
		all := append(paths, "model_index.json", "modules.json", ".gitignore")
		for _, layout := range []catalog.Layout{catalog.Diffusers, catalog.Transformers, catalog.ComfyUI} {
			o := NewOriginal(layout, "transformer", []string{"vae"}, all)
			o.Folder = NewFolder(Files{Paths: all, Read: func(name string) []byte { return []byte(texts[name]) }}, nil)
			for _, p := range all {
				if fate, why := o.Fate(p); strings.Contains(p, "acme") && fate != Stays && fate != Copied {
					t.Errorf("%v: with %q, %s is named (%d, %s)", layout, ignored, p, fate, why)
				}
			}
		}
	}
}

// TestLinksAreJudgedByTheirTargets checks for each way to keep a file back that a link to it is
// kept back too, whatever its own name is, and that no reason names the target.
func TestLinksAreJudgedByTheirTargets(t *testing.T) {
	ignored := "secret.txt\nruns/\nvae/*.log\n"
	targets := map[string]bool{ // whether they come along under another name
		"tokenizer.json": true, "notes.txt": true, "data/plain.txt": true, "vae/config.json": true,
		".env": false, ".git/config": false, "a/.cache/token": false, "secret.txt": false, "SECRET.TXT": false,
		"runs/keys.json": false, "vae/train.log": false, "data/draft.md": false, "result/unlisted.json": false,
	}
	paths := []string{"model_index.json", ".gitignore", "data/.gitignore", "modeling_x.py", "link.png"}
	for target := range targets {
		if target != ".git/config" && target != "a/.cache/token" && target != "result/unlisted.json" {
			paths = append(paths, target)
		}
	}
	read := func(name string) []byte {
		return []byte(map[string]string{".gitignore": ignored, "data/.gitignore": "draft.*", "README.md": "![x](link.png)",
			"model_index.json": small["model_index.json"], "config.json": small["config.json"]}[name])
	}
	links := []string{"vocab.txt", "LICENSE", "README.md", "config.json", "vae/preprocessor_config.json", "link.png", "modeling_x.py",
		"vae/diffusion_pytorch_model.safetensors", "data/extra.bin"}
	all := slices.Concat(paths, links)
	for target, want := range targets {
		for _, link := range links {
			f := NewFolder(Files{Paths: all, Links: map[string]string{link: target}, Read: read}, []string{"data/*.bin"})
			o := NewOriginal(catalog.Diffusers, "transformer", []string{"vae"}, all)
			o.Folder = f
			fate, why := o.Fate(link)
			kept := f.KeepsBack(link)
			// what a .gitignore names comes along if the caller's pattern names the link, as any
			// file does
			included := link == "data/extra.bin" && !isHidden(target) && target != "result/unlisted.json"
			if (kept == "") != (want || included) || strings.Contains(kept+why, target) {
				t.Errorf("%s -> %s: kept back: %q, %q", link, target, kept, why)
			}
			if comes := fate == Copied || fate == Part; !want && !included && comes {
				t.Errorf("%s -> %s: comes along", link, target)
			} else if want && !comes && link != "README.md" && link != "config.json" && link != "data/extra.bin" {
				t.Errorf("%s -> %s: stays (%d, %s)", link, target, fate, why)
			}
		}
		f := NewFolder(Files{Paths: all, Links: map[string]string{"README.md": target}, Read: read}, nil)
		if f.Opens("link.png") != want {
			t.Errorf("README.md -> %s: its picture comes along: %v", target, !want)
		}
	}
	f := NewFolder(Files{Paths: all, Links: map[string]string{"vocab.txt": ".env"}, Read: read}, []string{"vocab.txt"})
	if !f.Includes("vocab.txt") {
		t.Error("a link that the caller spells out stays")
	}
}

// TestHiddenFilesAreSpelledOut checks that no pattern with wildcards, and none that names another
// file or folder, takes a hidden file along.
func TestHiddenFilesAreSpelledOut(t *testing.T) {
	hidden := []string{".env", ".env.local", "a/.env", ".git/config", ".ssh/id_rsa", "a/.cache/huggingface/token", "a/b/.netrc", ".a/.b/c"}
	f := func(patterns ...string) *Folder {
		return NewFolder(Files{Paths: hidden, Read: func(string) []byte { return nil }}, patterns)
	}
	for _, pattern := range []string{"*", "**", "**/*", "/*", ".*", "**/.*", "*env*", "?env", "[.]env", "a", "a/", "a/**", "a/*", "*/", "**/", ".?nv", "*.local", "token", "config", "env", "/", "", "id_rsa",
		".git", ".git/", "a/.cache", ".a/.b"} {
		for _, file := range hidden {
			if f(pattern).Includes(file) {
				t.Errorf("%q brings %s", pattern, file)
			}
		}
		if f(pattern).Unmatched([]string{pattern}, hidden) != pattern {
			t.Errorf("%q is said to match", pattern)
		}
	}
	for pattern, file := range map[string]string{".env": ".env", "/.env": ".env", "a/.env": "a/.env"} {
		if !f(pattern).Includes(file) {
			t.Errorf("%q doesn't bring %s", pattern, file)
		}
	}
}

// TestWholeNames checks that a file comes along by its whole name only: a name that is longer at
// either end stays in the folder, whatever its beginning or end is.
func TestWholeNames(t *testing.T) {
	names := slices.Concat(slices.Collect(maps.Keys(opened)), slices.Collect(maps.Keys(notices)), []string{
		"LICENSE.md", "NOTICE.txt", "sentence_bert_config.json", "tokenizer.model.v3", "qwen.tiktoken", "model.safetensors",
		"model.fp16.safetensors", "pytorch_model.bin", "model.safetensors.index.json", "tf_model.h5", "model-00001-of-00002.safetensors",
	})
	f := NewFolder(Files{}, nil)
	for _, name := range names {
		if !f.Opens(name) {
			t.Errorf("%s stays", name)
		}
		stem, end := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			stem, end = name[:i], name[i:]
		}
		for _, other := range []string{
			name + "_key", name + "-for-acme", name + ".key", name + ".bak", name + "~", name + "s.db", name + " (copy)", name + "\n", name + ".docx",
			stem + "_key" + end, stem + "-for-acme" + end, stem + ".acme" + end, stem + " (copy)" + end, "my " + name, "acme-" + name,
		} {
			if f.Opens(other) && !strings.HasSuffix(other, ".tiktoken") {
				t.Errorf("%q comes along like %s", other, name)
			}
		}
	}
}

// isIgnoredBy reports whether a file counts as ignored by the patterns.
func isIgnoredBy(g globs, name string) bool {
	left := maxSteps
	return g.ignores(name, &left)
}

// TestGlobs checks patterns against what Git says of them (git check-ignore 2.39).
func TestGlobs(t *testing.T) {
	for pattern, names := range map[string]map[string]bool{
		"a":        {"a": true, "x/a": true, "a/b": true, "ab": false, "A": true},
		"/a":       {"a": true, "x/a": false, "a/b": true},
		"a/":       {"a": false, "a/b": true, "x/a/b": true},
		"x/a":      {"x/a": true, "y/x/a": false, "x/a/b": true},
		"*.log":    {"a.log": true, "x/a.log": true, "a.log/b": true, "alog": false},
		"a*":       {"a": true, "ab": true, "ba": false, "a/x": true},
		"x/*":      {"x/a": true, "x/a/b": true, "x": false},
		"x/**":     {"x/a": true, "x/a/b": true, "x": false, "y/x/a": false},
		"**/a":     {"a": true, "x/y/a": true, "ba": false},
		"x/**/a":   {"x/a": true, "x/y/a": true, "x/y/z/a": true, "xa": false},
		"a?c":      {"abc": true, "ac": false, "a/c": false},
		"[a-c].x":  {"b.x": true, "d.x": false},
		"[!a-c].x": {"b.x": false, "d.x": true},
		"[z-a]":    {"b": false},
		"[":        {"[": false, "a": false},
		`\#a`:      {"#a": true, "a": false},
		`\!a`:      {"!a": true, "a": false},
		"a.b":      {"a.b": true, "axb": false},
		"":         {"a": false},
	} {
		for name, want := range names {
			g, whole := new(ignores).parse([]byte("other\n" + pattern + "\n"))
			if got := isIgnoredBy(g, name); got != want || !whole {
				t.Errorf("%q matches %q: %v", pattern, name, got)
			}
		}
	}
	for name, want := range map[string]bool{"keep.json": false, "x.json": true, "d/keep.json": true, "deep/keep.json": false} {
		g, _ := new(ignores).parse([]byte("*.json\r\n!keep.json  \n# x\n\nd/\n"))
		if got := isIgnoredBy(g, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestGlobsNeverWiden checks that no file that Git keeps back is published because a .gitignore is
// read in another way: those of other editors and encodings, patterns that only Git knows, and
// files that can't be read or have no end.
func TestGlobsNeverWiden(t *testing.T) {
	for text, want := range map[string]string{ // what git check-ignore 2.39 says of x/a.json and é.json
		"\ufeffa.json\n": "a", "\ufeff# x\n": "", "***/a.json": "a", "x/***/a.json": "a", "x/***": "a", "x**/a.json": "a",
		"[^]b]*.json": "aé", "[]a].json": "a", "[\\a].json": "a", "[a-\\c].json": "a", "[z-a].json": "", "[a-z].json": "a",
		"a[.].json": "", "x[+-9]a.json": "", "??.json": "é", "?.json": "a", "[é][é].json": "é",
		"a.json\x00b\n": "a", "a.json\r\n": "a", `a.json\\\ `: "", "a.json   ": "a", `a.json\ `: "",
		"*.json\n!A.json": "aé", "*.json\n![[:alpha:]].json": "é", "*.json\n![\\a].json": "é", "*.json\n!y**/a.json": "aé",
		"*.json\n!a.json": "é",
		"[!X]*":           "aé", "[^X]*": "aé", "[!A]*.json": "aé", "*.json\n![!A]*.json": "", "[!b]*.json": "aé",
		"[[:lower:]].json": "a",
	} {
		g, whole := new(ignores).parse([]byte(text))
		got := ""
		for name, letter := range map[string]string{"x/a.json": "a", "é.json": "é"} {
			if isIgnoredBy(g, name) {
				got += letter
			}
		}
		if got != want && got != "éa" || got == "éa" && want != "aé" || !whole {
			t.Errorf("%q ignores %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("#\n", maxIgnoreBytes/2)
	for text, want := range map[string]bool{long: true, long + "#": false, strings.Repeat("a\n", maxIgnore+1): false} {
		if g, whole := new(ignores).parse([]byte(text)); whole != want || isIgnoredBy(g, "tokenizer.json") == want {
			t.Errorf("%d bytes: %v", len(text), whole)
		}
	}
	if g, whole := new(ignores).parse(nil); whole || !isIgnoredBy(g, "x/tokenizer.json") {
		t.Error("a file that can't be read ignores nothing")
	}
	if g, _ := new(ignores).parse([]byte(strings.Repeat("*a", maxIgnoreBytes/2))); isIgnoredBy(g, strings.Repeat("ab", 2000)) {
		t.Error("it matches too much")
	}
}

// TestClassesKeepBackWhatGitDoes checks each class of one byte, and each negated one, against what
// it means in Git, for every name of one byte: what Git keeps back, we keep back.
func TestClassesKeepBackWhatGitDoes(t *testing.T) {
	for c := byte('!'); c < 0x7f; c++ {
		for _, not := range []string{"", "!", "^"} {
			if not == "" && (c == '!' || c == '^') { // that's a negated class without an end
				continue
			}
			g, _ := new(ignores).parse([]byte("[" + not + "\\" + string(c) + "]"))
			for name := byte('!'); name < 0x7f; name++ {
				if git := (name == c) == (not == "") && name != '/' && name != '.'; git && !isIgnoredBy(g, string(name)) {
					t.Errorf("[%s%c] doesn't match %c", not, c, name)
				}
			}
		}
	}
}

// TestIgnoresAreBounded checks that the longest .gitignores of each kind, many of them, are read in
// time that grows with their length, and that they keep little memory.
func TestIgnoresAreBounded(t *testing.T) {
	for _, unit := range []string{"[", "[a", "[]", "[\x01-\xfe]", "[!a-z]", "*", "**/", "?", "\\[", "a/", "[[:", "[-"} {
		text := []byte(strings.Repeat(unit, maxIgnoreBytes/len(unit)))
		var paths []string
		for i := range 100 {
			paths = append(paths, string(rune('a'+i%26))+strings.Repeat("x", i/26)+"/.gitignore")
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := NewFolder(Files{Paths: paths, Read: func(string) []byte { return text }}, nil)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 16<<20 {
			t.Errorf("%q: %d bytes stay in memory", unit, kept)
		}
		if !f.isIgnored("bxx/tokenizer.json") {
			t.Errorf("%q: the last of too many .gitignores doesn't ignore everything", unit)
		}
	}
}

// TestLastInclusionCounts checks that a pattern with an exclamation mark takes out again what those
// before it bring, and that a quoted path matches that path alone.
func TestLastInclusionCounts(t *testing.T) {
	paths := []string{"a.txt", "b/a.txt", ".env", "x[1].txt", "x1.txt", `y\*.txt`}
	for _, c := range []struct {
		include []string
		want    string
	}{
		{[]string{"*"}, `a.txt b/a.txt x[1].txt x1.txt y\*.txt`},
		{[]string{"*", "!a.txt"}, `x[1].txt x1.txt y\*.txt`},
		{[]string{"*", "!/a.txt"}, `b/a.txt x[1].txt x1.txt y\*.txt`},
		{[]string{"!a.txt", "*.txt"}, `a.txt b/a.txt x[1].txt x1.txt y\*.txt`},
		{[]string{"*", "!b/", ".env", "!x*", "x1.txt"}, `a.txt .env x1.txt y\*.txt`},
		{[]string{".env", "!*"}, ".env"},
		{[]string{".env", "!/.env"}, ""},
		{[]string{Quote("x[1].txt"), Quote(`y\*.txt`)}, `x[1].txt y\*.txt`},
	} {
		f := NewFolder(Files{Paths: paths, Read: func(string) []byte { return nil }}, c.include)
		got := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !f.Includes(p) })
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q", c.include, got)
		}
	}
}
