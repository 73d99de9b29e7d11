package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// verdictRow matches a row of the table of verdicts in docs/verify.md.
var verdictRow = regexp.MustCompile("(?m)^\\| `(model|pair|files)` \\| `(\\w+)` \\| (\\d) \\|")

// A verdictCase is a DF11 model, and the verdicts about it.
type verdictCase struct {
	name  string
	forge func(f *forged) // nil changes nothing
	fit   bool            // the manifest is rewritten to fit the files
	args  string          // of verify
	// the verdicts about model, pair, and files: "ok" for well_formed, same_weights, and same; "-"
	// for not_compared
	verdicts string
	exit     int
	says     string // with single blanks
}

// theModel, thePair and theFiles are cases whose fault is of that subject.
var theModel = []verdictCase{
	{name: "gaps", fit: true, verdicts: "damaged - ok", exit: exitWrong,
		forge: changes("model_layers_1.safetensors", "model.layers.1.gaps", flipBit),
		says:  "the model damaged: module model.layers.1"},
	{name: "a hash", forge: flipWeight, verdicts: "damaged - ok", exit: exitWrong,
		says: "the model damaged: model_layers_1.safetensors: it has "},
	{name: "a bit of a folder", forge: rot, args: "--level full --against LOCAL",
		verdicts: "damaged different_weights ok", exit: exitWrong,
		says: "hint: copy or download the model again"},
	{name: "a weight file less", forge: removes("lm_head.safetensors"),
		verdicts: "damaged - ok", exit: exitWrong,
		says: "the model damaged: lm_head.safetensors: the manifest lists it"},
	{name: "a weight file less, by the dict", fit: true, forge: removes("lm_head.safetensors"),
		verdicts: "damaged - ok", exit: exitWrong, says: "the model damaged: lm_head"},
	{name: "no config.json", fit: true, forge: removes("config.json"),
		verdicts: "damaged - different", exit: exitWrong,
		says: "the model damaged: config.json: missing: without its dfloat11_config"},
	{name: "no config.json and no manifest", forge: removes("config.json", names.Manifest),
		args: "--against " + llamaModel, verdicts: "damaged - different", exit: exitWrong,
		says: "the model damaged: config.json: missing"},
	{name: "a dict that can't be read", fit: true, verdicts: "damaged - -", exit: exitWrong,
		forge: edits("config.json", `"threads_per_block": [`,
			`"Threads_per_block": [256], "threads_per_block": [`), says: "the files not compared"},
	{name: "an unknown version", fit: true, verdicts: "damaged - -", exit: exitWrong,
		forge: edits("config.json", `"version": "0.5.0"`, `"version": "99.0"`), says: `format version "99.0" is unknown`},
	{name: "no version", fit: true, verdicts: "damaged - -", exit: exitWrong,
		forge: edits("config.json", `"version": "0.5.0",`, ""), says: `format version "" is unknown`},
	{name: "too large a manifest", verdicts: "damaged - -", exit: exitWrong, args: "--against LOCAL",
		forge: fills(names.Manifest, " ", 256<<20+1), says: "df11-manifest.json: it has 268435457 bytes"},
	{name: "too large a config.json", verdicts: "damaged - -", exit: exitWrong, args: "--against LOCAL",
		forge: fills(names.Config, " ", 8<<20+1), says: "config.json: it has 8388609 bytes"},
	{name: "two names", fit: true, forge: sets("Config.json", "{}"), verdicts: "damaged - -",
		exit: exitWrong},
	{name: "and a wrong original", fit: true, args: "--against " + evilModel,
		forge:    changes("model_layers_1.safetensors", "model.layers.1.gaps", flipBit),
		verdicts: "damaged - ok", exit: exitWrong},
	{name: "and files", args: "--strict-files", verdicts: "damaged - different", exit: exitWrong,
		forge: func(f *forged) { flipWeight(f); f.set("x.py", "") },
		says:  "the files different: 1 other file differs from the original: x.py (added)"},
}

var thePair = []verdictCase{
	{name: "a weight", fit: true, forge: flipWeight, verdicts: "ok different_weights ok",
		exit: exitWrong, says: "the pair different weights: module model.layers.1, tensor "},
	{name: "a weight, by proof", fit: true, forge: flipWeight, args: "--level proof",
		verdicts: "ok different_weights ok", exit: exitWrong},
	{name: "a copied tensor less", fit: true, verdicts: "ok different_weights ok", exit: exitWrong,
		forge: without("remainder.safetensors", "model.norm.weight"),
		says:  "the pair different weights: model.norm.weight: stored nowhere"},
	{name: "another original", args: "--against " + evilModel,
		verdicts: "ok other_original ok", exit: exitWrong,
		says: "the pair other original: made from org/llama@"},
	{name: "another original, by no manifest", forge: removes(names.Manifest),
		args: "--against " + evilModel, verdicts: "ok different_weights ok", exit: exitWrong},
	{name: "an original of other shapes", args: "--against org/shapes",
		verdicts: "ok other_original ok", exit: exitWrong,
		says: "differs from org/shapes: made from org/llama@"},
	{name: "an original of other shapes, by no manifest", forge: removes(names.Manifest),
		args: "--against org/shapes", verdicts: "ok different_weights ok", exit: exitWrong},
	{name: "an original that can't have the dict", args: "--against org/headless",
		verdicts: "ok other_original different", exit: exitWrong,
		says: "no conversion of this original makes such a model"},
	{name: "the same, by no manifest", args: "--against org/headless", forge: removes(names.Manifest),
		verdicts: "ok other_original different", exit: exitWrong,
		says: "hint: name the original it was made from"},
	{name: "a tied head that differs", forge: isNow("org/tied"), args: "--against org/untied",
		verdicts: "ok other_original ok", exit: exitWrong,
		says: "lm_head.weight is tied to model.embed_tokens.weight by the config"},
	{name: "a tied head that differs, by proof and no manifest", args: "--level proof --against org/untied",
		forge:    func(f *forged) { isNow("org/tied")(f); removes(names.Manifest)(f) },
		verdicts: "ok different_weights ok", exit: exitWrong},
	{name: "the other transformer, by nothing", args: "--against " + pipeModel,
		forge: func(f *forged) {
			isNow(pipe2Model)(f)
			removes(names.Manifest, names.Card)(f)
		}, verdicts: "ok ok ok", says: "equals org/pipe (transformer_2)"},
	{name: "no original", verdicts: "ok no_original -", exit: exitError,
		forge: func(f *forged) {
			says(func(m *metadata.Manifest) { m.Source.Repo = "" })(f)
			removes(names.Card)(f)
		}, says: "the pair no original: anybody/v doesn't name its original: "},
	{name: "another component, and files", fit: true, args: "--against " + pipeModel,
		forge: func(f *forged) {
			isNow(pipeModel)(f)
			f.set("vae/diffusion_pytorch_model.bin", "x")
			f.set("x.py", "")
		}, verdicts: "ok different_weights different", exit: exitWrong,
		says: "the pair different weights: vae/"},
}

var theFiles = []verdictCase{
	{name: "a large card", fit: true, args: "--strict-files", forge: fills(names.Card, "x", 9<<20), verdicts: "ok ok ok"},
	{name: "changed", fit: true, forge: sets("generation_config.json", "{}"),
		verdicts: "ok ok different",
		says:     "the files different: 1 other file differs from the original: generation_config.json"},
	{name: "changed, after the conversion", forge: sets("generation_config.json", "{}"),
		verdicts: "ok ok different",
		says:     "1 other file differs from the original: generation_config.json"},
	{name: "changed, strict", forge: sets("generation_config.json", "{}"), args: "--strict-files",
		verdicts: "ok ok different", exit: exitFiles},
	{name: "added, strict", fit: true, forge: sets("x.py", ""), args: "--strict-files",
		verdicts: "ok ok different", exit: exitFiles},
	{name: "missing, strict", forge: removes("tokenizer.json"), args: "--strict-files",
		verdicts: "ok ok different", exit: exitFiles},
	{name: "config.json", verdicts: "ok ok different",
		forge: edits("config.json", `"rope_theta": 500000.0`, `"rope_theta": 10000.0`)},
	{name: "what a conversion or a Hub writes", args: "--strict-files", verdicts: "ok ok ok",
		forge: func(f *forged) {
			f.set(names.Card, "```\npip install evil\n```\n")
			f.set(names.Attributes, "*.safetensors -filter\n")
		}, says: "not compared .gitattributes, README.md, df11-manifest.json, df11.png"},
	{name: "a file of the original that no repo can hold", forge: isNow("org/aux"),
		args: "--strict-files", verdicts: "ok ok different", exit: exitFiles,
		says: "1 other file differs from the original: aux.py (missing)"},
	{name: "weights in another form", forge: isNow("org/aux"), verdicts: "ok ok different",
		says: "left out pytorch_model.bin (weights in another form)"},
	{name: "another set of weights", forge: isNow("org/two"), verdicts: "ok ok different",
		says: "against org/two (model.safetensors) (level proof): weights equal; 4 other files differ"},
	{name: "a part that a pull request hides", fit: true, verdicts: "ok different_weights ok",
		exit: exitWrong, forge: func(f *forged) {
			isNow(pipeModel)(f)
			hidden := f.request(pipeModel, map[string][]byte{"model_index.json": []byte(
				`{"_class_name": "WanPipeline", "transformer": ["diffusers", "WanTransformer3DModel"]}`)})
			f.files["model_index.json"] = f.models["of "+pipeModel]["model_index.json"]
			delete(f.files, "text_encoder/model.safetensors")
			named(func(s *metadata.Source) { s.Commit = hidden })(f)
		}, says: "text_encoder/model.safetensors: these weights of another component are missing"},
}

// rot flips a bit of a weight, and leaves all other bytes of the file.
func rot(f *forged) {
	const file = "model_layers_1.safetensors"
	b := bytes.Clone(f.files[file])
	h, err := safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
	world.Must(f.T, err)
	x, _ := h.Lookup("model.layers.1.sign_mantissa")
	b[h.DataStart()+x.Begin] ^= 1
	f.files[file] = b
}

// isNow takes all files of another honest model.
func isNow(model string) func(f *forged) {
	return func(f *forged) { f.files = maps.Clone(f.models[model]) }
}

// removes removes files.
func removes(files ...string) func(f *forged) {
	return func(f *forged) {
		for _, name := range files {
			delete(f.files, name)
		}
	}
}

// sets writes a file.
func sets(name, text string) func(f *forged) { return func(f *forged) { f.set(name, text) } }

// fills writes a long file. It's made only then: scripts start this binary as the program hundreds of
// times, each with the tables of all tests.
func fills(name, with string, n int) func(f *forged) {
	return func(f *forged) { f.set(name, strings.Repeat(with, n)) }
}

// addOriginals adds the originals of the cases: org/shapes has the Llama's names and other shapes;
// org/tied and org/untied tie their heads by the config, and the head of org/untied is another
// matrix; org/headless stores none; org/two has shards next to model.safetensors; org/aux has a file whose name Windows reserves.
func (g *forger) addOriginals() {
	shapes := &forged{forger: g, files: maps.Clone(g.models["of "+llamaModel])}
	shapes.tensors("model.safetensors", func(list []world.Tensor) []world.Tensor {
		for i, x := range list {
			if strings.HasSuffix(x.Name, "gate_proj.weight") {
				list[i].Shape, list[i].Data = []int64{x.Shape[0] / 2, x.Shape[1]}, x.Data[:len(x.Data)/2]
			}
		}
		return list
	})
	g.AddRepo("org/shapes", shapes.files)
	o := hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2, Tied: true, StoreTied: true}
	tied := hubtest.NewLlama(0, o).Files()
	untied := &forged{forger: g, files: maps.Clone(tied)}
	changes("model.safetensors", "lm_head.weight", flipBit)(untied)
	g.add("org/tied", tied)
	g.AddRepo("org/untied", untied.files)
	o.StoreTied = false
	g.AddRepo("org/headless", hubtest.NewLlama(0, o).Files())
	o.ShardBytes = 16 << 10
	two := hubtest.NewLlama(3, o).Files()
	two["model.safetensors"] = tied["model.safetensors"]
	g.AddRepo("org/two", two)
	g.models["org/two"] = g.convert("org/two", "--file", "model.safetensors")
	aux := maps.Clone(g.models["of "+llamaModel])
	aux["aux.py"], aux["pytorch_model.bin"] = []byte("def f(): pass"), []byte("pickled")
	g.add("org/aux", aux)
}

// TestVerdicts checks that each fault counts against one subject, with its own line, object, and
// exit code, and that the other subjects are judged anyway. docs/verify.md lists the verdicts.
func TestVerdicts(t *testing.T) {
	g := newForger(t)
	g.addOriginals()
	honest := []verdictCase{
		{name: "honest", fit: true, verdicts: "ok ok ok",
			says: "the model well formed the pair same weights the files same"},
		{name: "honest, strict", fit: true, args: "--strict-files", verdicts: "ok ok ok"},
		{name: "structure", fit: true, args: "--level structure", verdicts: "ok - ok",
			says: "the pair not compared"},
	}
	seen := map[string]bool{}
	for _, x := range slices.Concat(honest, theModel, thePair, theFiles) {
		if x.forge == nil {
			x.forge = func(*forged) {}
		}
		x.check(g, seen)
	}
	documented := map[string]bool{}
	page := string(world.Read(t, filepath.Join("..", "..", "docs", "verify.md")))
	for _, m := range verdictRow.FindAllStringSubmatch(page, -1) {
		documented[m[1]+m[2]+m[3]] = true
	}
	if !maps.Equal(seen, documented) {
		t.Errorf("docs/verify.md has %v, the program said %v",
			slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen)))
	}
}

// check verifies the case's model as people and programs do. It adds the verdicts to seen.
func (x *verdictCase) check(g *forger, seen map[string]bool) {
	g.Helper()
	f := g.forge(llamaModel, x.fit, x.forge)
	at := f.place("v")
	if strings.Contains(x.args, "LOCAL") {
		at = f.folder()
	}
	local := filepath.Join(g.local, llamaModel)
	args := append([]string{"verify", at},
		strings.Fields(strings.Replace(x.args, "LOCAL", local, 1))...)
	code, text, diag := program(g.T, args...)
	isDamaged := strings.HasPrefix(x.verdicts, "damaged") && !strings.Contains(x.verdicts, "weights")
	if !strings.Contains(oneSpace(text+diag), x.says) || code != x.exit ||
		strings.Contains(text, " is damaged: ") != isDamaged {
		g.Errorf("%s: exit %d, want %d and %q: %s%s", x.name, code, x.exit, x.says, text, diag)
	}
	_, out, _ := program(g.T, append(args, "--json")...)
	var doc struct {
		Exit     int `json:"exit_code"`
		Equal    bool
		Verdicts map[string]struct {
			Verdict string
			Exit    int `json:"exit_code"`
			Why     string
		}
	}
	world.Must(g.T, json.Unmarshal([]byte(out), &doc))
	first := 0
	good := map[string]string{"model": "well_formed", "pair": "same_weights", "files": "same"}
	for i, s := range []string{"model", "pair", "files"} {
		v, want := doc.Verdicts[s], strings.Fields(x.verdicts)[i]
		switch want {
		case "ok":
			want = good[s]
		case "-":
			want = "not_compared"
		}
		isFault := want != good[s] && want != "not_compared"
		if v.Verdict != want || (v.Why != "") != isFault {
			g.Errorf("%s: the %s is %+v, want %s: %s", x.name, s, v, want, out)
		}
		seen[fmt.Sprint(s, v.Verdict, v.Exit)] = true
		first = cmp.Or(first, v.Exit)
	}
	if doc.Exit != x.exit || first != x.exit ||
		doc.Equal != (doc.Verdicts["pair"].Verdict == "same_weights") {
		g.Errorf("%s: exit %d and %d: %s", x.name, doc.Exit, first, out)
	}
}

// TestNoOriginal checks that the error about a model that names no original says only what is so, and
// that decode finds the right part of a pipeline.
func TestNoOriginal(t *testing.T) {
	g := newForger(t)
	other := g.forge(pipe2Model, false, removes(names.Manifest, names.Card)).folder()
	must(t, "decode", other, "--against", pipeModel, "-o", t.TempDir())
	single := g.forge(llamaModel, false, func(f *forged) { f.files = g.convert(llamaModel, "--layout", "transformers-single") })
	at := single.folder()
	files, err := filepath.Glob(filepath.Join(at, "*.safetensors"))
	world.Must(t, err)
	file := files[0]
	for _, x := range []struct {
		file    string
		without []string
		said    string
	}{
		{file, nil, "it's one file, without a manifest or a card\nhint: verify its folder"},
		{file, []string{names.Manifest}, "it's one file, without a manifest or a card\nhint: name the original"},
		{at, []string{names.Card}, "it has no manifest and no card\nhint: name the original"},
	} {
		for _, name := range x.without {
			world.Must(t, os.Remove(filepath.Join(at, name)))
		}
		if code, _, diag := program(t, "verify", x.file); code != exitError || !strings.Contains(diag, x.said) {
			t.Errorf("%s without %v: exit %d: %s", x.file, x.without, code, diag)
		}
	}
}

// TestWhatMattersIsNamed checks that verify names files that programs run first and leaves out none
// that they open, however many harmless files there are, and wherever they sort.
func TestWhatMattersIsNamed(t *testing.T) {
	g := newForger(t)
	for _, n := range []int{0, 1, 19, 20, 24, 500} {
		f := g.forge(llamaModel, true, func(f *forged) {
			for i := range n {
				f.set(fmt.Sprintf("a%03d.md", i), "")
				f.set(fmt.Sprintf("zz%03d.png", i), "")
			}
			f.set("tokenizer.json", "{}")
			f.set("modeling_evil.py", "")
			f.set("zz.bin", "")
			f.set("chat_template.jinja", "x")
			f.set("zz/model.safetensors.index.json", "{}")
		})
		const want = "modeling_evil.py (added), zz.bin (added), tokenizer.json, chat_template.jinja (added), zz/model.safetensors.index.json (added)"
		_, out, _ := program(t, "verify", f.folder(), "--level", "structure")
		if strings.Count(out, " from the original: "+want) != 2 || n > 8 && !strings.Contains(out, fmt.Sprintf(" and %d more\n", 2*n-15)) {
			t.Errorf("%d files: %s", n, out)
		}
	}
}
