package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// verdictRow matches a row of the table of verdicts in docs/verify.md.
var verdictRow = regexp.MustCompile("(?m)^\\| `(model|pair|files)` \\| `(\\w+)` \\| (\\d) \\|")

// TestVerdicts checks that each fault counts against one subject, with its own line, object, and
// exit code, and that the other subjects are judged anyway. docs/verify.md lists the verdicts.
func TestVerdicts(t *testing.T) {
	g := newForger(t)
	tied := tiedModel(g)
	const good, bad = "well_formed same_weights same", "damaged not_compared same"
	noManifest := func(f *forged) { delete(f.files, names.Manifest) }
	seen := map[string]bool{}
	for _, x := range []struct {
		name     string
		fit      bool // the manifest was rewritten
		forge    func(f *forged)
		args     []string
		verdicts string // of model, pair and files
		exit     int
		lines    []string
	}{
		{"honest", true, func(*forged) {}, nil, good, exitOK, []string{"the model  well formed", "the pair   same weights", "the files  same\n"}},
		{"honest, strict", true, func(*forged) {}, []string{"--strict-files"}, good, exitOK, nil},
		{"structure", true, func(*forged) {}, []string{"--level", "structure"}, "well_formed not_compared same", exitOK, []string{"the pair   not compared"}},
		// The model.
		{"gaps", true, changes("model_layers_1.safetensors", "model.layers.1.gaps", flipBit), nil, bad, exitWrong, []string{"the model  damaged: module model.layers.1", "the pair   not compared"}},
		{"a hash", false, flipWeight, nil, bad, exitWrong, []string{"the model  damaged: model_layers_1.safetensors: it has "}},
		{"a weight file less", false, func(f *forged) { delete(f.files, "lm_head.safetensors") }, nil, "damaged not_compared different", exitWrong, []string{"the model  damaged: lm_head.safetensors: the manifest lists it"}},
		{"a weight file less, by the dict", true, func(f *forged) { delete(f.files, "lm_head.safetensors") }, nil, "damaged not_compared different", exitWrong, []string{"the model  damaged: lm_head"}},
		{"a dict that can't be read", true, edits("config.json", `"threads_per_block": [`, `"Threads_per_block": [256], "threads_per_block": [`), nil, "damaged not_compared not_compared", exitWrong, []string{"the files  not compared"}},
		{"two names", true, func(f *forged) { f.set("Config.json", "{}") }, nil, "damaged not_compared not_compared", exitWrong, nil},
		{"damaged, and a wrong original", true, changes("model_layers_1.safetensors", "model.layers.1.gaps", flipBit), []string{"--against", evilModel}, "damaged not_compared different", exitWrong, nil},
		{"damaged, and files", false, func(f *forged) {
			flipWeight(f)
			f.set("x.py", "")
		}, []string{"--strict-files"}, "damaged not_compared different", exitWrong, []string{"the files  different: 1 other file differs from the original: x.py (added)"}},
		// The pair.
		{"a weight", true, flipWeight, nil, "well_formed different_weights same", exitWrong, []string{"the pair   different weights: module model.layers.1, tensor "}},
		{"a weight, by proof", true, flipWeight, []string{"--level", "proof"}, "well_formed different_weights same", exitWrong, nil},
		{"a copied tensor less", true, without("remainder.safetensors", "model.norm.weight"), nil, "well_formed different_weights same", exitWrong, []string{"the pair   different weights: model.norm.weight: stored nowhere"}},
		{"another original", false, func(*forged) {}, []string{"--against", evilModel}, "well_formed other_original different", exitWrong, []string{"the pair   other original: made from org/llama@"}},
		{"another original, by no manifest", false, noManifest, []string{"--against", evilModel}, "well_formed different_weights different", exitWrong, nil},
		{"an original of other shapes", false, func(*forged) {}, []string{"--against", tied}, "well_formed other_original different", exitWrong, []string{"differs from " + tied + ": made from org/llama@"}},
		{"an original of other shapes, by no manifest", false, noManifest, []string{"--against", tied}, "well_formed different_weights different", exitWrong, nil},
		// The files.
		{"changed", true, func(f *forged) { f.set("generation_config.json", "{}") }, nil, "well_formed same_weights different", exitOK, []string{"the files  different: 1 other file differs from the original: generation_config.json"}},
		{"changed, after the conversion", false, func(f *forged) { f.set("generation_config.json", "{}") }, nil, "well_formed same_weights different", exitOK, []string{"1 other file differs from the original: generation_config.json"}},
		{"changed, strict", false, func(f *forged) { f.set("generation_config.json", "{}") }, []string{"--strict-files"}, "well_formed same_weights different", exitFiles, nil},
		{"added, strict", true, func(f *forged) { f.set("x.py", "") }, []string{"--strict-files"}, "well_formed same_weights different", exitFiles, nil},
		{"missing, strict", false, func(f *forged) { delete(f.files, "tokenizer.json") }, []string{"--strict-files"}, "well_formed same_weights different", exitFiles, nil},
		{"no .gitattributes in a repo", false, func(f *forged) { f.files[names.Attributes] = nil }, nil, "well_formed same_weights different", exitOK, []string{": .gitattributes (missing)"}},
		{"config.json", false, edits("config.json", `"rope_theta": 500000.0`, `"rope_theta": 10000.0`), nil, "well_formed same_weights different", exitOK, nil},
		{"the card's code, strict", false, edits("README.md", "pip install", "pip  install"), []string{"--strict-files"}, "well_formed same_weights different", exitFiles, []string{"README.md (its code isn't ours)"}},
		{"another component, and files", true, func(f *forged) {
			f.files = maps.Clone(g.models[pipeModel])
			f.set("vae/diffusion_pytorch_model.bin", "x")
			f.set("x.py", "")
		}, []string{"--against", pipeModel}, "well_formed different_weights different", exitWrong, []string{"the pair   different weights: vae/", "the files  different: 1 other file differs from the original: x.py (added)"}},
	} {
		at := g.forge(llamaModel, x.fit, x.forge).place("v")
		code, out, diag := program(t, append([]string{"verify", at}, x.args...)...)
		for _, line := range x.lines {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s%s", x.name, line, out, diag)
			}
		}
		if isDamaged := strings.Contains(out, " is damaged: "); code != x.exit || isDamaged != strings.HasPrefix(x.verdicts, "damaged") {
			t.Errorf("%s: exit %d, want %d: %s%s", x.name, code, x.exit, out, diag)
		}
		_, out, _ = program(t, append([]string{"verify", at, "--json"}, x.args...)...)
		var doc struct {
			Exit     int `json:"exit_code"`
			Equal    bool
			Verdicts map[string]struct {
				Verdict string
				Exit    int `json:"exit_code"`
				Why     string
			}
		}
		world.Must(t, json.Unmarshal([]byte(out), &doc))
		var got []string
		first := 0
		for _, s := range []string{"model", "pair", "files"} {
			v := doc.Verdicts[s]
			got = append(got, v.Verdict)
			seen[fmt.Sprint(s, v.Verdict, v.Exit)] = true
			if first == 0 {
				first = v.Exit
			}
			if (v.Why == "") != slices.Contains([]string{"same", "same_weights", "well_formed", "not_compared"}, v.Verdict) {
				t.Errorf("%s: the %s is %+v", x.name, s, v)
			}
		}
		if strings.Join(got, " ") != x.verdicts || doc.Exit != x.exit || first != x.exit || doc.Equal != (got[1] == "same_weights") {
			t.Errorf("%s: %s, exit %d and %d: %s", x.name, got, doc.Exit, first, out)
		}
	}
	documented := map[string]bool{}
	for _, m := range verdictRow.FindAllStringSubmatch(string(world.Read(t, filepath.Join("..", "..", "docs", "verify.md"))), -1) {
		documented[m[1]+m[2]+m[3]] = true
	}
	if !maps.Equal(seen, documented) {
		t.Errorf("docs/verify.md has %v, the program said %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen)))
	}
}

// tiedModel makes an original with the Llama's names and other shapes, and returns its name.
func tiedModel(g *forger) string {
	f := &forged{forger: g, files: maps.Clone(g.models["of "+llamaModel])}
	f.tensors("model.safetensors", func(list []world.Tensor) []world.Tensor {
		for i, x := range list {
			if strings.HasSuffix(x.Name, "gate_proj.weight") {
				list[i].Shape, list[i].Data = []int64{x.Shape[0] / 2, x.Shape[1]}, x.Data[:len(x.Data)/2]
			}
		}
		return list
	})
	g.AddRepo("org/shapes", f.files)
	return "org/shapes"
}

// TestCardsCode checks that verify names a card if any byte of its code was changed or code was
// added. Other text in a card doesn't matter, and neither does a card without code.
func TestCardsCode(t *testing.T) {
	g := newForger(t)
	check := func(model, what, card string, ours bool) {
		t.Helper()
		f := g.forge(model, false, func(f *forged) { f.set(names.Card, card) })
		code, out, diag := program(t, "verify", f.folder(), "--level", "structure", "--strict-files", "--against", f.original())
		if named := strings.Contains(out, "README.md (its code isn't ours)"); named == ours || code != choose(ours, exitOK, exitFiles) {
			t.Errorf("%s, %s: exit %d: %s%s", model, what, code, out, diag)
		}
	}
	for _, model := range []string{llamaModel, pipe2Model, pipeModel} {
		card := string(g.models[model][names.Card])
		check(model, "as it was made", card, true)
		check(model, "text of one's own", card+"\nMy `notes`, and **more**.\n", true)
		check(model, "no code", "# Mine\n\nSee the docs.\n", true)
		for i, line := range slices.Collect(strings.Lines(metadata.Code([]byte(card)))) {
			if i%9 != 0 && !world.Deep() && !strings.Contains(line, "--against") || strings.TrimSpace(line) == "" {
				continue
			}
			at := i * 7 % (len(line) - 1)
			changed := line[:at] + string(rune(line[at]^1)) + line[at+1:]
			check(model, fmt.Sprintf("%q", changed), strings.Replace(card, line, changed, 1), false)
			check(model, fmt.Sprintf("without %q", line), strings.Replace(card, line, "", 1), false)
		}
		const more = "```\npip install evil\n```\n" // metadata.TestCode has other code
		check(model, "code added", card+"\n"+more, false)
		check(model, "code before", strings.Replace(card, "## Use it\n", "## Use it\n\n"+more, 1), false)
	}
	// The ways in which a card loads a component, and the base of the others.
	card := string(g.models[pipe2Model][names.Card])
	for _, x := range [][2]string{{"transformer_2=part", "transformer=part"}, {"pipe.transformer_2", "pipe.transformer"}, {`subfolder="transformer_2"`, `subfolder="transformer"`},
		{"org/pipe", "evil/pipe"}, {"org/pipe-DF11", "evil/pipe-DF11"}} {
		if strings.Contains(card, x[0]) {
			check(pipe2Model, x[1], strings.ReplaceAll(card, x[0], x[1]), false)
		}
	}
	// A card of another repo.
	g.AddRepo("anybody/theirs", g.forge(llamaModel, false, func(f *forged) {
		f.set(names.Card, strings.ReplaceAll(string(f.files[names.Card]), "verify llama-DF11", "verify me/llama-DF11"))
	}).files)
	ends(t, exitOK, "README.md (its code isn't ours)", "verify", "anybody/theirs", "--level", "structure")
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
