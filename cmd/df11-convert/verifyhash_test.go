package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// published is a conversion in a folder and in a repo of a hub, with its original in both.
type published struct {
	*hubtest.Server
	original, folder string
	files            map[string][]byte
	manifest         metadata.Manifest
}

const publishedRepo, publishedSource = "tester/model-DF11", "org/model"

func publish(t *testing.T) *published {
	t.Helper()
	dir := t.TempDir()
	p := &published{Server: hubtest.Start(t), original: filepath.Join(dir, "model"), folder: filepath.Join(dir, "df11")}
	t.Setenv("HF_ENDPOINT", p.URL)
	t.Setenv("HF_HOME", filepath.Join(dir, "home"))
	m := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, ExtraFiles: true})
	world.Must(t, m.Write(p.original))
	p.AddRepo(publishedSource, m.Files())
	must(t, publishedSource, "-o", p.folder)
	p.files = world.ReadAll(t, p.folder)
	p.AddRepo(publishedRepo, p.files)
	world.Must(t, json.Unmarshal(p.files[names.Manifest], &p.manifest))
	return p
}

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
	p := publish(t)
	kinds := map[metadata.Kind]bool{}
	for _, o := range p.manifest.Outputs {
		kinds[o.Kind] = true
		bad := spoiled(o.Path, p.files[o.Path])
		if o.Path == names.Card {
			bad = append(bytes.Clone(p.files[o.Path]), "\nMine.\n"...) // its code is what programs need
		}
		p.Push(publishedRepo, "main", map[string][]byte{o.Path: bad})
		forPeople := o.Kind == metadata.KindCard || o.Kind == metadata.KindImage
		exit, says := exitWrong, publishedRepo+" is damaged: "
		if !strings.HasSuffix(o.Path, ".safetensors") {
			exit, says = exitFiles, "; 1 other file differs from the original: "+o.Path
		} else {
			says += o.Path + ": sha256 is " + world.Sum(bad) + ", the manifest has " + o.SHA256
		}
		for _, level := range []string{"structure", "proof", "full"} {
			code, out, diag := program(t, "verify", publishedRepo, "--against", p.original, "--level", level, "--strict-files")
			switch {
			case forPeople && (code != exitOK || strings.Contains(out, o.Path)):
				t.Errorf("%s edited, level %s: exit %d: %s%s", o.Path, level, code, out, diag)
			case !forPeople && (code != exit || !strings.Contains(out, says)):
				t.Errorf("%s spoiled, level %s: exit %d: %s%s", o.Path, level, code, out, diag)
			}
		}
		p.Push(publishedRepo, "main", map[string][]byte{o.Path: p.files[o.Path]})
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
	p := publish(t)
	const file = "lm_head.safetensors"
	header := regexp.MustCompile(`("dtype":"[A-Z0-9]+"),("shape":\[[0-9,]*\])`) // in any order
	world.Write(t, filepath.Join(p.folder, file), header.ReplaceAll(p.files[file], []byte("$2,$1")))
	must(t, "verify", p.folder, "--against", p.original, "--level", "structure")
	if code, out, _ := program(t, "verify", p.folder, "--against", p.original, "--level", "full"); code != exitWrong || !strings.Contains(out, world.Sum(p.files[file])) {
		t.Errorf("exit %d: %s", code, out)
	}
}
