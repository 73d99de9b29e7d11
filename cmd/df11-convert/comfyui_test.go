package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// comfyCards are the columns of the table, in GB.
var comfyCards = []int{8, 12, 16, 24, 32, 48}

// TestComfyUIFromDiffusers plans ComfyUI files of models in diffusers' layout, with their true
// shapes: the node must know them by the tensors that it gets.
func TestComfyUIFromDiffusers(t *testing.T) {
	arranged := 0
	for _, m := range diffusersModels(t) {
		if _, known, _ := catalog.Arrange(m.Class, nil); !known {
			continue
		}
		arranged++
		dir := m.sparse(t)
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
// testdata/fits/diffusers.json are those of diffusers 0.39's classes, built without weights from
// the models' published configs; in a name, {0-18} stands for each of these numbers. Only models
// that the node loads from a file for ComfyUI stand in the first table; see
// TestComfyUIFromDiffusers.
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
		row := tableRow(t, m.Repo, m.sparse(t), comfyCards, comfyCell)
		if b[at].WriteString(row); !*updateFits && !strings.Contains(old, row) {
			t.Errorf("%s lacks %s: run this test with -update-fits", page, row)
		}
	}
	if *updateFits {
		tables := comfyTables(t, old)
		for i := range tables {
			old = strings.Replace(old, tables[i], tableHead(comfyCards)+b[i].String(), 1)
		}
		world.Must(t, os.WriteFile(page, []byte(old), 0o644))
	}
}

// comfyCell returns the cell of one card.
func comfyCell(g pipeline.Fit) string {
	switch {
	case g.BF16:
		return "both"
	case g.DF11:
		return "**DF11**"
	}
	return "–"
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

// TestComfyUIModels checks that README.md promises ComfyUI's users only models that the node
// loaded.
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

// sparse makes a folder with the model's config and shapes.
func (m diffusersModel) sparse(t *testing.T) string {
	t.Helper()
	shapes, found := map[string][]int64{}, int64(0)
	for names, shape := range m.Tensors {
		n := int64(1)
		for _, dim := range shape {
			n *= dim
		}
		for _, name := range world.Unbrace(t, names) {
			shapes[name] = shape
			found += n
		}
	}
	if found < m.Parameters { // buffers are saved too
		t.Fatalf("%s: the shapes hold %d values, the class has %d", m.Class, found, m.Parameters)
	}
	return sparseModel(t, fmt.Sprintf(`{"_class_name": %q}`, m.Class), shapes)
}
