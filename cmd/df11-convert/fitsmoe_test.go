package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// expertsHeading begins the part of docs/fits.md about mixtures of experts.
const expertsHeading = "\n## Mixtures of experts\n"

// expertModel is a model of testdata/fits/moe.txt.
type expertModel struct {
	name, source, config string
	shapes               map[string][]int64
}

// expertModels reads testdata/fits/moe.txt, which moe.py writes.
func expertModels(t *testing.T) (list []*expertModel) {
	t.Helper()
	for line := range strings.Lines(string(world.Read(t, "testdata/fits/moe.txt"))) {
		line = strings.TrimSpace(line)
		last := len(list) - 1
		switch name, isName := strings.CutPrefix(line, "= "); {
		case isName:
			list = append(list, &expertModel{name: name, shapes: map[string][]int64{}})
		case strings.HasPrefix(line, "# {"):
			list[last].config = line[2:]
		case strings.HasPrefix(line, "# "):
			list[last].source = line[2:]
		default:
			names, shape, _ := strings.Cut(line, " ")
			for _, n := range world.Unbrace(t, names) {
				list[last].shapes[n] = world.Shape(t, shape)
			}
		}
	}
	return list
}

func whole(t *testing.T, s string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(s, &n)
	world.Must(t, err)
	return n
}

// expertRow plans a model and returns its row, and how much smaller it becomes.
func expertRow(t *testing.T, m *expertModel) (row string, percent int64) {
	t.Helper()
	dir := sparseModel(t, m.config, m.shapes)
	var doc struct {
		BF16 int64 `json:"source_bytes"`
		DF11 struct {
			Bytes int64 `json:"output_bytes"`
		} `json:"estimate"`
		Files    int `json:"output_files"`
		Official *struct {
			Bytes int64        `json:"output_bytes"`
			Loads plan.Verdict `json:"loads"`
		} `json:"for_dfloat11"`
		Readers []plan.Reader  `json:"readers"`
		GPUs    []pipeline.Fit `json:"gpus"`
	}
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", dir, "--json", "--sample-bytes", "0")), &doc))
	percent = 100 - 100*doc.DF11.Bytes/doc.BF16
	verdict := func(name string) plan.Verdict {
		i := slices.IndexFunc(doc.Readers, func(r plan.Reader) bool { return r.Name == name })
		return doc.Readers[i].Loads
	}
	official := string(verdict(plan.OfficialReader))
	if doc.Official != nil {
		official = fmt.Sprintf("%s, as %s", doc.Official.Loads, human.Bytes(doc.Official.Bytes))
	}
	smallest := func(holds func(pipeline.Fit) bool) string {
		for _, g := range doc.GPUs {
			if holds(g) {
				return fits.Fit(g).String()
			}
		}
		return "–"
	}
	return fmt.Sprintf("| %s | %s | %s | %d%% | %d | %s | %s | %s | %s | %s |\n", m.name, human.Bytes(doc.BF16),
		human.Bytes(doc.DF11.Bytes), percent, doc.Files, verdict(plan.OwnReader), official,
		smallest(func(g pipeline.Fit) bool { return g.BF16 }), smallest(func(g pipeline.Fit) bool { return g.DF11 }),
		m.source), percent
}

// TestExpertsPage checks the part of docs/fits.md about mixtures of experts against the command
// plan: some of its models, or all with DF11_DEEP. All of them get 30% smaller, and are known to
// load in df11.
func TestExpertsPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "fits.md")
	before, part, _ := strings.Cut(string(world.Read(t, page)), expertsHeading)
	intro, old, _ := strings.Cut(part, "| model |")
	var b bytes.Buffer
	b.WriteString("| model | BF16 | DF11 | smaller | files | `df11` | `dfloat11` | smallest GPU for BF16 | for DF11 | shape |\n" +
		"| --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- |\n")
	const few = 13
	for i, m := range expertModels(t) {
		if !*updateFits && !world.Deep() && i%few != 2 {
			continue
		}
		row, _ := expertRow(t, m)
		if b.WriteString(row); !*updateFits && !strings.Contains(old, row) {
			t.Errorf("%s lacks %s: run this test with -update-fits", page, row)
		}
	}
	if *updateFits {
		world.Must(t, os.WriteFile(page, []byte(before+expertsHeading+intro+b.String()), 0o644))
		old = b.String()
	}
	small, loaded := 0, 0
	for line := range strings.Lines(old) {
		cells := strings.Split(line, " | ")
		if len(cells) == 10 && strings.HasSuffix(cells[3], "%") && whole(t, strings.TrimSuffix(cells[3], "%")) >= 30 {
			if small++; cells[5] == "yes" {
				loaded++
			}
		}
	}
	if small < 40 || loaded < small {
		t.Errorf("%s: only %d mixtures of experts are 30%% smaller, and %d of these load in df11", page, small, loaded)
	}
}
