package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// spoiled returns a file of the same size with one wrong bit or, for text that is parsed, another
// blank.
func spoiled(name string, b []byte) []byte {
	b = slices.Clone(b)
	if i := bytes.IndexAny(b, " \n"); i >= 0 && strings.HasSuffix(name, ".json") {
		b[i] = '\t'
	} else {
		b[len(b)-1] ^= 1
	}
	return b
}

// TestEveryLevelComparesFreeSums changes one file after the other, so that the Hub's list and the
// manifest disagree. With --strict-files no level passes, and each names the file, and both hashes of
// weights, without reading weights. Only weights make a model damaged, and an edited card is no fault.
func TestEveryLevelComparesFreeSums(t *testing.T) {
	g := newForger(t)
	const repo = "tester/model-DF11"
	files, original := g.models[llamaModel], filepath.Join(g.local, llamaModel)
	g.AddRepo(repo, files)
	m, err := metadata.ParseManifest(files[names.Manifest], 0)
	world.Must(t, err)
	kinds := map[metadata.Kind]bool{}
	for _, o := range m.Outputs {
		kinds[o.Kind] = true
		bad := spoiled(o.Path, files[o.Path])
		if o.Path == names.Card {
			bad = append(bytes.Clone(files[o.Path]), "\nMine.\n"...) // its code is what programs need
		}
		g.Push(repo, "main", map[string][]byte{o.Path: bad})
		forPeople := o.Kind == metadata.KindCard || o.Kind == metadata.KindImage
		exit, says := exitWrong, repo+" is damaged: "
		if !strings.HasSuffix(o.Path, ".safetensors") {
			exit, says = exitFiles, "; 1 other file differs from the original: "+o.Path
		} else {
			says += o.Path + ": sha256 is " + world.Sum(bad) + ", the manifest has " + o.SHA256
		}
		for _, level := range []string{"structure", "proof", "full"} {
			code, out, diag := program(t, "verify", repo, "--against", original, "--level", level, "--strict-files")
			switch {
			case forPeople && (code != exitOK || strings.Contains(lastLine(out), o.Path) || !strings.Contains(out, "not compared  ")):
				t.Errorf("%s edited, level %s: exit %d: %s%s", o.Path, level, code, out, diag)
			case !forPeople && (code != exit || !strings.Contains(out, says)):
				t.Errorf("%s spoiled, level %s: exit %d: %s%s", o.Path, level, code, out, diag)
			}
		}
		g.Push(repo, "main", map[string][]byte{o.Path: files[o.Path]})
	}
	for _, k := range []metadata.Kind{metadata.KindUnit, metadata.KindRemainder, metadata.KindConfig, metadata.KindCard, metadata.KindCopied} {
		if !kinds[k] {
			t.Errorf("no file of kind %s was tried", k)
		}
	}
}

// TestFolderHashesWeightsOnRequest checks that in a folder, only level full compares the hashes of
// weights that decode to the right values.
func TestFolderHashesWeightsOnRequest(t *testing.T) {
	g := newForger(t)
	const file = "lm_head.safetensors"
	header := regexp.MustCompile(`("dtype":"[A-Z0-9]+"),("shape":\[[0-9,]*\])`) // in any order
	at := g.forge(llamaModel, false, func(f *forged) {
		f.files[file] = header.ReplaceAll(f.files[file], []byte("$2,$1"))
	}).folder()
	must(t, "verify", at, "--level", "structure")
	ends(t, exitWrong, world.Sum(g.models[llamaModel][file]), "verify", at, "--level", "full")
}
