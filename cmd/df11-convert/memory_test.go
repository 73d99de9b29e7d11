package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestMemoryHoldsForWhatIsParsed checks that every command keeps to the smallest budget whatever
// headers, configs, indexes, cards, and manifests there are. It refuses what is too large before it
// reads it, and says that the budget is the reason.
func TestMemoryHoldsForWhatIsParsed(t *testing.T) {
	t.Cleanup(func() {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(100)
	})
	files := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}).Files()
	source := filepath.Join(t.TempDir(), "honest")
	world.WriteAll(t, source, files)
	honest := filepath.Join(t.TempDir(), "df11")
	must(t, source, "-o", honest, "-q")

	var many, long []world.Tensor
	for i := range 40_000 {
		many = append(many, world.Tensor{Name: fmt.Sprintf("m.%d", i), DType: "BF16", Shape: []int64{1}, Data: []byte{0, 0}})
	}
	for i := range 30_000 {
		long = append(long, world.Tensor{Name: fmt.Sprintf("%d.%s", i, strings.Repeat("x", 480)), DType: "BF16", Shape: []int64{1}, Data: []byte{0, 0}})
	}
	config := func(b []byte) []byte { // a member with millions of values
		return bytes.Replace(b, []byte("{"), []byte(`{"list": [`+strings.Repeat("0,", 3<<20)+`0],`), 1)
	}
	index := []byte(`{"weight_map": {` + strings.TrimSuffix(strings.Repeat(`"x": "model.safetensors",`, 500_000), ",") + `}}`)
	for name, spoil := range map[string]map[string][]byte{
		"many tensors": {names.Weights: world.Safetensors(many)},
		"long names":   {names.Weights: world.Safetensors(long)},
		"a config":     {names.Config: config(files[names.Config])},
		"an index":     {names.Weights: nil, "model-00001-of-00001.safetensors": files[names.Weights], "model.safetensors.index.json": index},
		"a card":       {names.Card: bytes.Repeat([]byte("- \n"), 2<<20)},
	} {
		spoiled := filepath.Join(t.TempDir(), "x")
		world.WriteAll(t, spoiled, files)
		for file, b := range spoil {
			_ = os.Remove(filepath.Join(spoiled, file))
			if b != nil {
				world.Write(t, filepath.Join(spoiled, file), b)
			}
		}
		for _, args := range [][]string{{"plan", spoiled}, {spoiled, "-o", filepath.Join(t.TempDir(), "out")}, {"verify", honest, "--against", spoiled}} {
			keepsToBudget(t, name, args)
		}
	}

	result := world.ReadAll(t, honest)
	for name, spoil := range map[string]map[string][]byte{
		"many tensors": {"more.safetensors": world.Safetensors(many)},
		"long names":   {"more.safetensors": world.Safetensors(long)},
		"a config":     {names.Config: config(result[names.Config])},
		"a card":       {names.Card: bytes.Repeat([]byte("- \n"), 2<<20)},
		"a manifest":   {names.Manifest: bytes.Replace(result[names.Manifest], []byte("{"), []byte(`{"dropped": ["`+strings.Repeat("x", int(metadata.MaxManifestBytes(64<<20)))+`"],`), 1)},
	} {
		spoiled := filepath.Join(t.TempDir(), "x")
		world.WriteAll(t, spoiled, result)
		world.WriteAll(t, spoiled, spoil)
		for _, args := range [][]string{{"verify", spoiled, "--against", source}, {"inspect", spoiled}, {"decode", spoiled, "--against", source, "-o", filepath.Join(t.TempDir(), "out")}} {
			keepsToBudget(t, name, args)
		}
	}
}

// TestMemoryHoldsForTargets checks the same of what a target holds, in a folder and in a repo:
// manifests and journals that are too large, or that decode to too much. Many small journals count as
// a large one.
func TestMemoryHoldsForTargets(t *testing.T) {
	t.Cleanup(func() {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(100)
	})
	srv := hubtest.Start(t, hubtest.WithUser("hf_tester", hubtest.User{Name: "tester"}))
	t.Setenv("HF_ENDPOINT", srv.URL)
	t.Setenv("HF_TOKEN", "hf_tester")
	srv.AddModel("org/m", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}))
	limit := int(metadata.MaxManifestBytes(64 << 20))
	journal := `{"version":1,"plan":"` + strings.Repeat("a", 64) + `","result":{},"keeps":true,"former":[`
	large := bytes.Repeat([]byte("x"), limit+1)
	crowded := bytes.Repeat([]byte("{},"), limit/4)
	many := map[string][]byte{}
	for i := range 20 {
		many[fmt.Sprintf("part-%d-of-20.json", i+1)] = large[:limit/16]
	}
	for i, x := range []struct {
		name              string
		manifest, journal []byte
		journals          map[string][]byte
	}{
		{name: "a large manifest", manifest: large},
		{name: "a crowded manifest", manifest: append([]byte(`{"dropped":[`), crowded...)},
		{name: "a large journal", journal: large},
		{name: "a crowded journal", journal: append([]byte(journal), crowded...)},
		{name: "many journals", journals: many},
	} {
		repo, folder := map[string][]byte{}, map[string][]byte{}
		if x.manifest != nil {
			repo[names.Manifest], folder[names.Manifest] = x.manifest, x.manifest
		}
		if x.journal != nil {
			repo[names.JournalDir+"/part-1-of-1.json"] = x.journal
			folder[names.StateDir+"/part-1-of-1.json"] = x.journal
		}
		for name, b := range x.journals {
			repo[names.JournalDir+"/"+name] = b
		}
		target := fmt.Sprintf("tester/t%d", i)
		srv.AddRepo(target, repo)
		list := filepath.Join(t.TempDir(), "list.yaml")
		world.Write(t, list, "models:\n- source: org/m\n  repo-id: "+target+"\n")
		for _, args := range [][]string{{"org/m", "--push", "--repo-id", target}, {"status", list}} {
			code, out, diag := program(t, append(args, "--memory", "64MiB")...)
			said := "raise --memory, or leave it out"
			if args[0] == "status" {
				said = "memory budget"
			}
			if code != exitError || !strings.Contains(out+diag, said) {
				t.Errorf("%s, %s: exit %d: %.300s%.300s", x.name, args[0], code, out, diag)
			}
		}
		if len(folder) > 0 {
			out := filepath.Join(t.TempDir(), "out")
			world.WriteAll(t, out, folder)
			keepsToBudget(t, x.name, []string{"org/m", "-o", out})
		}
	}
}

// keepsToBudget runs the program with 64 MiB, which must end by that limit without allocating much.
func keepsToBudget(t *testing.T, name string, args []string) {
	t.Helper()
	var code int
	var out, diag string
	nBytes := alloc.Bytes(func() { code, out, diag = program(t, append(args, "--memory", "64MiB")...) })
	if code != exitError || !strings.Contains(diag, "raise --memory, or leave it out") {
		t.Errorf("%s, %s: exit %d: %.300s%.300s", name, args[0], code, out, diag)
	}
	if nBytes > 32<<20 {
		t.Errorf("%s, %s: %d bytes were allocated", name, args[0], nBytes)
	}
}
