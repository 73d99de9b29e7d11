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
)

// TestPrintedLimitsAreEnough: a least budget is large enough if it is given as it is printed, and hardly larger than it must be.
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

// TestPlanAndConvertNameOneDisk: the least --disk that plan names is the one that the conversion asks for and works with.
func TestPlanAndConvertNameOneDisk(t *testing.T) {
	srv := hubtest.Start(t)
	t.Setenv("HF_ENDPOINT", srv.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_TOKEN", "hf_any")
	srv.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 64, Vocab: 1024, Layers: 1}))
	var doc struct {
		Estimate struct {
			Needs struct {
				Least int64 `json:"disk_least_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(must(t, "plan", "org/model", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	least := doc.Estimate.Needs.Least
	words := human.BytesUp(least)
	if out := must(t, "plan", "org/model"); !strings.Contains(out, "(minimum --disk: "+words+")") {
		t.Errorf("no %s in\n%s", words, out)
	}
	code, _, diag := program(t, "org/model", "--push", "--disk", fmt.Sprint(least-1))
	if code != exitError || !strings.Contains(diag, "at least "+words+" are needed") || !strings.Contains(diag, "raise --disk") {
		t.Errorf("exit %d: %s", code, diag)
	}
	must(t, "org/model", "--push", "--disk", words)
}

// TestFinishedTargetIsNotVerifiedAnew: a run that has made nothing does not tell of a verification. It says how to repeat it.
func TestFinishedTargetIsNotVerifiedAnew(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	llama(t, src, "BF16", 0, "")
	if first := must(t, src, "-o", out); !strings.Contains(first, "0 differ") {
		t.Error(first)
	}
	want := "up to date: " + out + " was verified when it was made; run df11-convert verify " + out + " to check it again\n"
	if again := must(t, src, "-o", out); again != want {
		t.Errorf("%q, want %q", again, want)
	}
	if again := must(t, src, "-o", out, "--json"); !strings.Contains(again, `"by_this_run": false`) || !strings.Contains(again, `"files_made": 0`) {
		t.Error(again)
	}
}

// TestF32IsSampled: the refusal of a F32 model says whether --exact-f32 will take it.
func TestF32IsSampled(t *testing.T) {
	dir := t.TempDir()
	exact, real := filepath.Join(dir, "exact"), filepath.Join(dir, "real")
	llama(t, exact, "F32", 0, "")
	llama(t, real, "F32", 1, "")
	for _, command := range [][]string{{"plan"}, {"convert"}} {
		for source, hint := range map[string]string{exact: "sampled F32 values are exact BF16: add --exact-f32", real: "sampled F32 values cannot be stored in BF16 exactly"} {
			code, _, diag := program(t, append(command, source)...)
			if code != exitRefused || !strings.Contains(diag, hint) {
				t.Errorf("%v %s: exit %d: %s", command, source, code, diag)
			}
		}
	}
}

// TestNothingFoundInOneSentence: what is not there is told without requests and identifiers, which --verbose adds.
func TestNothingFoundInOneSentence(t *testing.T) {
	srv := hubtest.Start(t)
	t.Setenv("HF_ENDPOINT", srv.URL)
	t.Setenv("HF_HOME", t.TempDir())
	srv.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1}))
	for spec, want := range map[string]string{
		"org/none": "df11-convert: org/none: no such repo, or it is private", "org/model@none": "df11-convert: org/model: no such revision",
	} {
		for _, command := range []string{"plan", "convert", "inspect"} {
			code, _, diag := program(t, command, spec)
			if first, _, _ := strings.Cut(diag, "\n"); code != exitError || first != want || !strings.Contains(diag, "\nhint: ") {
				t.Errorf("%s %s: exit %d: %s", command, spec, code, diag)
			}
		}
		if _, _, diag := program(t, "plan", spec, "-v"); !strings.Contains(diag, "request id") {
			t.Error(diag)
		}
	}
}

// TestModelsFitATerminal: the table of models is at most 80 columns wide, and one id shows all that is known of it.
func TestModelsFitATerminal(t *testing.T) {
	for line := range strings.Lines(must(t, "models")) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for id, text := range map[string]string{"bagel-7b-mot": "DFloat11/BAGEL-7B-MoT-DF11", "bert": "provenance"} {
		if out := must(t, "models", id); !strings.Contains(out, text) || strings.Contains(out, "modernbert") {
			t.Error(out)
		}
	}
}
