package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// comfyCards are the columns of the table, in GB.
var comfyCards = []int{8, 12, 16, 24, 32, 48}

// TestComfyUIFromDiffusers plans ComfyUI files of models in diffusers' layout, with their true shapes:
// the node must know them by the tensors that it gets.
func TestComfyUIFromDiffusers(t *testing.T) {
	arranged := 0
	for _, m := range diffusersModels(t) {
		if _, known, _ := catalog.Arrange(m.Class, nil); !known {
			continue
		}
		arranged++
		dir := sparseDenoiser(t, m.Class, m.Parameters, m.Tensors)
		out := must(t, "plan", dir, "--layout", "single", "--sample-bytes", "0")
		if !regexp.MustCompile(`ComfyUI-DFloat11-Extended +\S+ +yes`).MatchString(out) {
			t.Errorf("%s: %s", m.Repo, out)
		}
	}
	if arranged < 4 {
		t.Errorf("%d models", arranged)
	}
}

// A diffusersModel is one of testdata/fits/diffusers.json.
type diffusersModel struct {
	Repo, Class string
	Parameters  int64
	Tensors     map[string][]int64
}

func diffusersModels(t *testing.T) (models []diffusersModel) {
	t.Helper()
	world.Must(t, json.Unmarshal(world.Read(t, "testdata/fits/diffusers.json"), &models))
	return models
}

// TestComfyUIPage checks the table of docs/comfyui.md against the command plan. The shapes in
// testdata/fits/diffusers.json are those of diffusers 0.39's classes, built without weights from the
// models' published configs; in a name, {0-18} stands for each of these numbers. Only models that
// the node loads from a file for ComfyUI stand in the first table; see TestComfyUIFromDiffusers.
func TestComfyUIPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "comfyui.md")
	old := string(world.Read(t, page))
	var b [2]strings.Builder // rows for the node, and for diffusers alone
	isFull := *updateFits || world.Deep()
	for i, m := range diffusersModels(t) {
		at := 1
		if _, known, _ := catalog.Arrange(m.Class, nil); known {
			at = 0
		}
		tables := comfyTables(t, old)
		if !strings.Contains(tables[at], "| "+m.Repo+" |") || strings.Contains(tables[1-at], "| "+m.Repo+" |") {
			t.Errorf("%s belongs into table %d of %s: run this test with -update-fits", m.Repo, at+1, page)
		}
		if !isFull && i%4 != 1 {
			continue
		}
		dir := sparseDenoiser(t, m.Class, m.Parameters, m.Tensors)
		var cells []string
		var sizes string
		for _, gb := range comfyCards {
			var doc struct {
				BF16 int64 `json:"source_bytes"`
				DF11 struct {
					Bytes int64 `json:"output_bytes"`
				} `json:"estimate"`
				GPUs []struct {
					BF16 bool `json:"bf16_fits"`
					DF11 bool `json:"df11_fits"`
				}
			}
			out := must(t, "plan", dir, "--json", "--sample-bytes", "0", "--vram", fmt.Sprintf("%dGB", gb))
			world.Must(t, json.Unmarshal([]byte(out), &doc))
			sizes = fmt.Sprintf("%s | %s", human.Bytes(doc.BF16), human.Bytes(doc.DF11.Bytes))
			cell := "–"
			if doc.GPUs[0].DF11 {
				cell = "**DF11**"
			}
			if doc.GPUs[0].BF16 {
				cell = "both"
			}
			cells = append(cells, cell)
		}
		row := fmt.Sprintf("| %s | %s | %s |\n", m.Repo, sizes, strings.Join(cells, " | "))
		if b[at].WriteString(row); !*updateFits && !strings.Contains(old, row) {
			t.Errorf("%s lacks %s: run this test with -update-fits", page, row)
		}
	}
	if *updateFits {
		tables := comfyTables(t, old)
		for i := range tables {
			header := "| model | BF16 | DF11 |"
			for _, gb := range comfyCards {
				header += fmt.Sprintf(" %d GB |", gb)
			}
			header += "\n| --- | ---: | ---: |" + strings.Repeat(" --- |", len(comfyCards)) + "\n"
			old = strings.Replace(old, tables[i], header+b[i].String(), 1)
		}
		world.Must(t, os.WriteFile(page, []byte(old), 0o644))
	}
}

// comfyTables returns the tables of docs/comfyui.md: of models that the node loads, and of others.
func comfyTables(t *testing.T, page string) (tables [2]string) {
	t.Helper()
	parts := strings.Split(page, "\n| model |")
	if len(parts) != 3 {
		t.Fatalf("docs/comfyui.md has %d tables of models, want 2", len(parts)-1)
	}
	for i, part := range parts[1:] {
		table, _, _ := strings.Cut(part, "\n\n")
		tables[i] = "| model |" + table + "\n"
	}
	return tables
}

// TestComfyUIModels checks that README.md promises ComfyUI's users only models that the node loaded.
func TestComfyUIModels(t *testing.T) {
	_, line, _ := strings.Cut(string(world.Read(t, "../../README.md")), "**you run ComfyUI**")
	_, line, _ = strings.Cut(line, " with ")
	line, _, ok := strings.Cut(line, " ([what fits]")
	names := regexp.MustCompile(`, or |, `).Split(line, -1)
	if !ok || len(names) < 2 {
		t.Fatalf("README.md names %q", names)
	}
	plain := strings.NewReplacer("-", "", " ", "", ".", "")
	for _, name := range names {
		if !slices.ContainsFunc(catalog.All(), func(e *catalog.Entry) bool {
			class, result, _ := e.InComfy()
			return result == "equal" && strings.EqualFold(class, plain.Replace(name))
		}) {
			t.Errorf("README.md names %s for ComfyUI, which comfy.txt doesn't have as equal", name)
		}
	}
}

// sparseDenoiser makes a diffusers folder whose weight file has a true header and a hole.
func sparseDenoiser(t *testing.T, class string, parameters int64, tensors map[string][]int64) string {
	t.Helper()
	var entries []safetensors.Entry
	found := int64(0)
	for pattern, shape := range tensors {
		for _, name := range expand(pattern) {
			e := safetensors.Entry{Name: name, DType: safetensors.BF16, Shape: shape}
			entries = append(entries, e)
			n := int64(1)
			for _, dim := range shape {
				n *= dim
			}
			found += n
		}
	}
	if found < parameters { // buffers are saved too
		t.Fatalf("%s: the shapes hold %d values, the class has %d", class, found, parameters)
	}
	h, err := safetensors.NewHeader(nil, entries)
	world.Must(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "diffusion_pytorch_model.safetensors")
	world.Write(t, file, h.Bytes())
	if err := os.Truncate(file, h.Size()); err != nil {
		t.Skipf("NOT TESTED: no room for a hole of %s here: %v", human.Bytes(h.Size()), err)
	}
	world.Write(t, filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"_class_name": %q}`, class))
	return dir
}

var braces = regexp.MustCompile(`\{([0-9,-]+)\}`)

// expand lists the names that a pattern stands for: {0-18} and {0,2,4} are numbers.
func expand(pattern string) []string {
	at := braces.FindStringSubmatchIndex(pattern)
	if at == nil {
		return []string{pattern}
	}
	var names []string
	for part := range strings.SplitSeq(pattern[at[2]:at[3]], ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, _ := strconv.Atoi(first)
		to := from
		if ranged {
			to, _ = strconv.Atoi(last)
		}
		for n := from; n <= to; n++ {
			names = append(names, expand(pattern[:at[0]]+strconv.Itoa(n)+pattern[at[1]:])...)
		}
	}
	return names
}
