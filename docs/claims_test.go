package docs_test

import (
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestSizesAreThoseOfThePlan checks the sizes and contexts that README.md and docs/questions.md
// state against docs/fits.md, which holds what plan prints.
func TestSizesAreThoseOfThePlan(t *testing.T) {
	fits := map[string][]string{}
	for row := range strings.Lines(read(t, "docs/fits.md")) {
		if cells := strings.Split(row, " | "); len(cells) > 8 {
			fits[strings.TrimPrefix(cells[0], "| Qwen/")] = cells[1:]
		}
	}
	qwen, small := fits["Qwen3-8B"], fits["Qwen3-0.6B"]
	if qwen == nil || small == nil {
		t.Fatal("docs/fits.md lacks a model of README.md")
	}
	readme, questions := flowed(t, "README.md"), flowed(t, "docs/questions.md")
	says(t, "README.md", readme, qwen[0]+" become "+qwen[1])
	says(t, "docs/questions.md", questions, qwen[0]+" take")
	if qwen[2] != "–" || qwen[3] != "**DF11 20k**" { // on 12 and 16 GB
		t.Errorf("Qwen3-8B on 16 GB: %s", qwen[3])
	}
	says(t, "docs/questions.md", questions, "Qwen3-8B fits 16 GB in DF11, with 20k tokens")
	shrinks(t, readme, "Qwen3-0.6B to", small)
	shrinks(t, questions, "Qwen3-4B comes out at", fits["Qwen3-4B"])
	shrinks(t, questions, "Qwen3-0.6B at", small)
}

// TestSpeedIsTheMeasured checks that README.md and docs/questions.md state the lowest and the
// highest of the speeds in docs/measured.md, and the demo's sizes as the demo prints them.
func TestSpeedIsTheMeasured(t *testing.T) {
	_, row, _ := strings.Cut(flowed(t, "docs/measured.md"), "relative to BF16's, were ")
	row, _, ok := strings.Cut(row, "in two runs")
	speeds := regexp.MustCompile(`\b0\.\d\d\b`).FindAllString(row, -1)
	if !ok || len(speeds) != 6 {
		t.Fatalf("docs/measured.md: %v", speeds)
	}
	want := slices.Min(speeds) + " to " + slices.Max(speeds) + " of BF16's tokens per second"
	for _, page := range []string{"README.md", "docs/questions.md"} {
		says(t, page, flowed(t, page), want)
	}
	readme := flowed(t, "README.md")
	demo := regexp.MustCompile(`BF16 (\S+ MB) DF11 (\S+ MB) \(`).FindStringSubmatch(readme)
	if demo == nil {
		t.Fatal("README.md doesn't show the demo")
	}
	says(t, "README.md", readme, "!["+demo[1]+" in BF16 become "+demo[2]+" in DF11")
}

// TestBuildNeeds checks that the pages name the version of Go that go.mod wants, and count the
// modules that the program is built from, without its own.
func TestBuildNeeds(t *testing.T) {
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	for _, page := range []string{"README.md", "docs/install.md"} {
		says(t, page, flowed(t, page), "[Go "+m[1]+"]")
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/df11-convert")
	out, err := list.Output()
	world.Must(t, err)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	says(t, "docs/install.md", flowed(t, "docs/install.md"), fmt.Sprintf("compiles %d modules", len(slices.Compact(modules))))
}

// shrinks fails unless a text states the size of DF11 as a share of BF16's, in the cells of
// docs/fits.md, which are rounded.
func shrinks(t *testing.T, text, before string, cells []string) {
	t.Helper()
	var bytes [2]float64
	for i := range bytes {
		number, unit, _ := strings.Cut(cells[i], " ")
		n, err := strconv.ParseFloat(number, 64)
		world.Must(t, err)
		bytes[i] = n * map[string]float64{"GB": 1e9, "MB": 1e6}[unit]
	}
	m := regexp.MustCompile(regexp.QuoteMeta(before) + ` (\d+)%`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no page says what %s", before)
	}
	if said, err := strconv.Atoi(m[1]); err != nil || math.Abs(float64(said)-100*bytes[1]/bytes[0]) > 1 {
		t.Errorf("%s %s%%: docs/fits.md has %.1f%%", before, m[1], 100*bytes[1]/bytes[0])
	}
}

// flowed returns a page as one line.
func flowed(t *testing.T, page string) string {
	t.Helper()
	return strings.Join(strings.Fields(read(t, page)), " ")
}

// says fails unless a page says something.
func says(t *testing.T, page, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s doesn't say %q", page, want)
	}
}
