package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestPrintedLimitsAreEnough checks that a minimum is large enough as it's printed, and hardly too
// large.
func TestPrintedLimitsAreEnough(t *testing.T) {
	for range 20_000 {
		n := rand.Int64N(1 << (1 + rand.IntN(50)))
		var got sizeFlag
		err := got.Set(human.BytesUp(n))
		if err != nil || int64(got) < n || float64(got) > 1.011*float64(n)+1 {
			t.Fatalf("%d is printed as %s: %v", n, human.BytesUp(n), err)
		}
	}
}

// TestPlanAndConvertAgreeOnTheDisk checks that plan with --disk ends as a conversion into a folder
// would, and says how one with --push would end. The minimum that both print is enough, and no more
// than that. A plan never shows less.
func TestPlanAndConvertAgreeOnTheDisk(t *testing.T) {
	startHub(t, "hf_any").AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 64, Vocab: 1024, Layers: 1}))
	local := filepath.Join(t.TempDir(), "local")
	llama(t, local, "BF16", 0, "")
	for _, source := range []string{"org/model", local} {
		var doc struct{ Needs pipeline.Needs }
		world.Must(t, json.Unmarshal([]byte(must(t, "plan", source, "--json", "--memory", "64MiB")), &doc))
		folder, push := doc.Needs.DiskFolderLeast, doc.Needs.DiskLeast
		if n := doc.Needs; n.Disk < folder || n.DiskPush < push {
			t.Errorf("%s: a plan below its minimum: %+v", source, n)
		}
		for i, disk := range []int64{1, folder - 1, folder, push - 1, push} {
			if disk <= 0 {
				continue
			}
			budget := []string{"--memory", "64MiB", "--disk", fmt.Sprintf("%dB", disk)}
			code, text, diag := program(t, append([]string{"plan", source}, budget...)...)
			want, _, said := program(t, append([]string{source, "-o", filepath.Join(t.TempDir(), "out")}, budget...)...)
			if code != want || code != exitOK && complaint(diag) != complaint(said) {
				t.Errorf("%s, %d of disk: plan ends with %d, the conversion with %d: %s%s", source, disk, code, want, diag, said)
			}
			if !strings.Contains(text, "loaders:") {
				t.Errorf("%s, %d of disk: no plan: %s", source, disk, text)
			}
			want, _, said = program(t, append([]string{source, "--push", "--repo-id", fmt.Sprint("d", i, "-", filepath.Base(source))}, budget...)...)
			least := human.BytesUp(push)
			if fits := disk >= push; fits != (want == exitOK) || !strings.Contains(text, "--disk at least "+least) || !fits && !strings.Contains(said, "at least "+least+" are needed") {
				t.Errorf("%s, %d of disk, --push: exit %d: %s\n%s", source, disk, want, said, text)
			}
			code, text, _ = program(t, append([]string{"plan", source, "--json"}, budget...)...)
			if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Needs.DiskLeast != push || (code != exitOK) != strings.Contains(text, `"kind": "disk_budget"`) {
				t.Errorf("%s, %d of disk: exit %d, %v: %s", source, disk, code, err, text)
			}
		}
		must(t, source, "--push", "--repo-id", "as-printed-"+filepath.Base(source), "--memory", "64MiB", "--disk", human.BytesUp(push))
	}
}

// complaint returns the line of an answer that names the error.
func complaint(diag string) string {
	_, line, _ := strings.Cut(diag, "df11-convert: ")
	line, _, _ = strings.Cut(line, "\n")
	return line
}
