package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

var update = flag.Bool("update", false, "rewrite testdata/plans")

// TestCatalogPlans plans every entry of the catalog on a synthetic source and compares the plans
// with golden files, one a family.
func TestCatalogPlans(t *testing.T) {
	families, _ := filepath.Glob("../catalog/entries/*.json")
	for _, file := range families {
		family := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(family, func(t *testing.T) {
			var of struct{ Entries []struct{ ID string } }
			world.Must(t, json.Unmarshal(world.Read(t, file), &of))
			var b bytes.Buffer
			for _, e := range of.Entries {
				describeEntry(t, &b, catalog.Find(e.ID))
			}
			compareGolden(t, filepath.Join("testdata", "plans", family+".txt"), b.Bytes())
		})
	}
}

// describeEntry writes the plans of one entry, untied and tied.
func describeEntry(t *testing.T, b *bytes.Buffer, e *catalog.Entry) {
	t.Helper()
	variants := []bool{false}
	if e.Tied != nil && e.Tied.Head != "" {
		variants = append(variants, true)
	}
	for _, tied := range variants {
		if e.Match.Tied != nil && *e.Match.Tied != tied {
			continue
		}
		describePlan(t, b, e, tied)
	}
}

// describePlan plans one source and writes the plan in a form that is easy to review.
func describePlan(t *testing.T, b *bytes.Buffer, e *catalog.Entry, tied bool) {
	t.Helper()
	fmt.Fprintf(b, "== %s tied=%v\n", e.ID, tied)
	made, opt := planEntry(t, e, tied), ownOptions(e)
	var refused *RefusedError
	switch {
	case errors.As(made.err, &refused) && e.Refuse != nil:
		fmt.Fprintf(b, "refused: %s\n\n", refused.Detail)
		return
	case made.err != nil:
		t.Errorf("%s: %v", e.ID, made.err)
		return
	}
	p := *made.plan
	if p.Entry != e.ID {
		t.Errorf("%s: the plan uses entry %q", e.ID, p.Entry)
	}
	checkWhole(t, &p)
	p.Readers = mustPlan(t, loadable(t, made.src, &p), opt).Readers // of tensors that the class has
	writePlan(b, &p)
}

// writePlan writes what a reviewer wants to see of a plan. A unit whose attributes equal those of
// the unit before is one line.
func writePlan(b *bytes.Buffer, p *Plan) {
	fmt.Fprintf(b, "layout %s, config %s, tied %v, digest %.16s\n", p.Layout, map[bool]string{true: "insert", false: "new"}[p.Config != ""], p.TiedEmbeddings, p.Digest())
	fmt.Fprintf(b, "dict %s\n", p.PatternDict.JSON("", ""))
	last := ""
	for _, u := range p.Units {
		list := tensorNames(u.Attrs, u.Path) + " + " + tensorNames(u.Siblings, u.Path)
		if list == last {
			list = "the same"
		} else {
			last = list
		}
		fmt.Fprintf(b, "unit %s in %s: %s\n", u.Path, u.File, list)
	}
	for _, f := range p.RemainderFiles {
		fmt.Fprintf(b, "rest %s: %s\n", f.Path, tensorNames(f.Plain, ""))
	}
	for _, a := range p.Aliases {
		fmt.Fprintf(b, "alias %s = %s\n", a.Tensor.Name, a.Of.Name)
	}
	fmt.Fprintf(b, "copied %s\n", filePaths(slices.Concat(p.Copied, p.Components)))
	for _, r := range p.Readers {
		if r.Loads != Refuses {
			fmt.Fprintf(b, "%s in %s: %s\n", r.Loads, r.Name, r.Why)
		}
	}
	b.WriteByte('\n')
}

// tensorNames lists tensors without their common path.
func tensorNames(ts []Tensor, path string) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(t.Name, path), ".")
	}
	return strings.Join(names, " ")
}

// filePaths lists the paths of files.
func filePaths(files []File) string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return strings.Join(paths, " ")
}

// compareGolden compares with a golden file, or rewrites it with -update.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := world.Read(t, path)
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d:\ngot  %s\nwant %s\n(rewrite with -update)", path, i+1, gotLines[i], wantLines[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d", path, len(gotLines), len(wantLines))
}

// checkWhole checks that every source tensor is in exactly one output file, an alias, or dropped on
// purpose.
func checkWhole(t *testing.T, p *Plan) {
	t.Helper()
	seen := map[string]int{}
	count := func(ts []Tensor) {
		for _, x := range ts {
			if x.SliceOf == "" || strings.HasSuffix(x.Name, ".0") {
				seen[x.Source]++
			}
		}
	}
	for _, f := range p.OutputFiles {
		for _, i := range f.Units {
			count(p.Units[i].Attrs)
			count(p.Units[i].Siblings)
			if p.Units[i].File != f.Path {
				t.Errorf("unit %s is in %s, its File is %s", p.Units[i].Path, f.Path, p.Units[i].File)
			}
		}
		count(f.Plain)
	}
	for _, a := range p.Aliases {
		seen[a.Tensor.Source]++
	}
	count(p.Dropped)
	for _, w := range p.Source().Weights {
		for _, x := range w.Header.Tensors {
			if seen[x.Name] != 1 {
				t.Errorf("tensor %s has %d places", x.Name, seen[x.Name])
			}
		}
	}
	CheckWritten(t, &safetensors.Header{Tensors: written(t, p)}, p)
}

// CheckWritten fails if a model with the tensors of a header is not what the plan describes. The
// tests of package plan_test set it, which may import who judges finished models.
var CheckWritten func(*testing.T, *safetensors.Header, *Plan)

// written lays out the files that a plan describes, as a conversion would, and lists their tensors.
func written(t *testing.T, p *Plan) (all []safetensors.Tensor) {
	t.Helper()
	in := map[string]string{}
	for _, f := range p.OutputFiles {
		var entries []safetensors.Entry
		plain := func(ts []Tensor) {
			for _, x := range ts {
				entries = append(entries, safetensors.Entry{Name: x.Name, DType: x.StoredDType(), Shape: x.Shape})
			}
		}
		for _, i := range f.Units {
			u := p.Units[i]
			if plain(u.Siblings); u.Unholdable != "" {
				plain(u.Attrs)
				continue
			}
			for name, n := range map[string]int64{
				"luts": 2, "encoded_exponent": 1, "sign_mantissa": u.NElems(), "output_positions": 4, "gaps": 320, "split_positions": int64(len(u.Attrs) - 1),
			} {
				e := safetensors.Entry{Name: u.Path + "." + name, DType: safetensors.U8, Shape: []int64{n}}
				switch name {
				case "luts":
					e.Shape = append(e.Shape, 256)
				case "split_positions":
					e.DType = safetensors.I64
				}
				entries = append(entries, e)
			}
		}
		plain(f.Plain)
		l, err := safetensors.NewHeader(f.Metadata, entries)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", f.Path, err)
		}
		h, err := new(safetensors.Headers).Parse(l.Bytes()[8:], l.Size())
		if err != nil {
			t.Fatalf("%s cannot be read: %v", f.Path, err)
		}
		for _, x := range h.Tensors {
			if in[x.Name] != "" {
				t.Errorf("%s is in %s and in %s", x.Name, in[x.Name], f.Path)
			}
			in[x.Name] = f.Path
		}
		all = append(all, h.Tensors...)
	}
	return all
}

// TestPublishedDicts reproduces the pattern dict of every published repo, order included.
// testdata/published.json was transcribed from the repos' config.json, apart from the catalog.
func TestPublishedDicts(t *testing.T) {
	t.Parallel()
	var published []struct {
		Repo string
		Dict catalog.PatternDict `json:"pattern_dict"`
	}
	if err := json.Unmarshal(world.Read(t, "testdata/published.json"), &published); err != nil {
		t.Fatal(err)
	}
	for _, pub := range published {
		e := catalog.Find(pub.Repo)
		if e == nil {
			t.Errorf("%s is not in the catalog", pub.Repo)
			continue
		}
		p, err := New(t.Context(), synth(t, e, mustBeTied(e)), Options{Like: pub.Repo})
		if err != nil {
			t.Errorf("%s: %v", pub.Repo, err)
			continue
		}
		if !p.PatternDict.Equal(pub.Dict) {
			t.Errorf("%s:\ngot  %s\nwant %s", pub.Repo, p.PatternDict.JSON("", ""), pub.Dict.JSON("", ""))
		}
	}
}

// TestUnambiguous checks that for each entry's source no other entry scores as high, so that the
// catalog's order decides nothing today.
func TestUnambiguous(t *testing.T) {
	t.Parallel()
	for _, e := range catalog.All() {
		if e.LikeOnly || len(e.PatternDict) == 0 {
			continue
		}
		src := synth(t, e, mustBeTied(e))
		r, err := readSource(src, Options{})
		world.Must(t, err)
		inv, err := takeInventory(t.Context(), r, &Notes{})
		world.Must(t, err)
		own := score(r, e, inv)
		for _, o := range catalog.All() {
			if n := score(r, o, inv); n >= own && !o.LikeOnly && o != e {
				t.Errorf("%s scores %d for the source of %s, which scores %d itself", o.ID, n, e.ID, own)
			}
		}
	}
}

// TestNamesOf plans a finished model again from its dict alone, with the entry's names and ties.
// The plan stores the same tensors in the same units under the same names.
func TestNamesOf(t *testing.T) {
	t.Parallel()
	for _, e := range catalog.All() {
		if e.Refuse != nil {
			continue
		}
		for _, tied := range []bool{false, true} {
			if e.Match.Tied != nil && *e.Match.Tied != tied {
				continue
			}
			made := planEntry(t, e, tied)
			world.Must(t, made.err)
			src, first := made.src, made.plan
			again, err := New(t.Context(), src, Options{PatternDict: first.PatternDict, Like: e.ID, Layout: first.Layout})
			if err != nil {
				t.Errorf("%s, tied %v: %v", e.ID, tied, err)
				continue
			}
			if first.Digest() != again.Digest() {
				t.Errorf("%s, tied %v: another plan", e.ID, tied)
			}
			if ids, err := Fitting(t.Context(), src, Options{}); err != nil || !slices.Contains(ids, e.ID) && len(e.Match.ModelType)+len(e.Match.ClassName)+len(e.Match.Markers) > 0 {
				t.Errorf("%s fits none of %v: %v", e.ID, ids, err)
			}
		}
	}
}

// TestTowers checks that a tower is compressed if all of its weights are BF16, and otherwise left
// as it is. The dicts of published repos have no towers.
func TestTowers(t *testing.T) {
	e := *catalog.Find("qwen2_5-vl")
	e.PatternDict = slices.Concat(e.PatternDict, e.Towers)
	for other, want := range map[string]int{"none": 4, "visual.merger.mlp.2.weight": 3, "visual.": 0} {
		src := synth(t, &e, false)
		for i, tensor := range src.Weights[0].Header.Tensors {
			if strings.HasPrefix(tensor.Name, other) {
				src.Weights[0].Header.Tensors[i].DType = "F16" // as large as BF16
			}
		}
		p, n := mustPlan(t, src, Options{}), 0
		for _, u := range p.Units {
			if strings.HasPrefix(u.Path, "model.visual.") {
				n++
			}
		}
		if n != want || len(p.Units) != want+5 {
			t.Errorf("%s in F16: %d modules of the tower are compressed, %d in all, want %d", other, n, len(p.Units), want)
		}
	}
	for _, e := range catalog.All() {
		if len(e.DF11Repos) > 0 && len(e.Towers) > 0 {
			t.Errorf("%s reproduces %v, which have no towers", e.ID, e.DF11Repos)
		}
	}
}
