package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// TestInspect: on a source and on its DF11 model the figures agree, and the page is written.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "m"), filepath.Join(dir, "m-DF11")
	llama(t, src, "BF16", 0, "")
	must(t, src, "-o", out)
	type figures struct {
		Kind      string
		Exact     bool
		Entropy   float64
		CodeBits  float64 `json:"code_bits"`
		Histogram any
		DF11Bytes int64 `json:"df11_bytes"`
		BF16Bytes int64 `json:"bf16_bytes"`
		Units     []struct {
			Path  string
			Codes []any
			LUTs  int
		}
	}
	var a, b figures
	for _, c := range []struct {
		model string
		to    *figures
	}{{src, &a}, {out, &b}} {
		page := filepath.Join(dir, "report.html")
		if err := json.Unmarshal([]byte(must(t, "inspect", c.model, "--json", "--html", page)), c.to); err != nil {
			t.Fatal(err)
		}
		if h := string(mustRead(t, page)); strings.Contains(h, "http:") || strings.Contains(h, "https:") || strings.Count(h, "<svg") != 3 {
			t.Error("the page refers to something outside, or lacks a plot")
		}
	}
	if a.Kind != "source" || b.Kind != "df11" || !a.Exact || !b.Exact || len(b.Units) != 4 || len(b.Units[0].Codes) == 0 || b.Units[0].LUTs == 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
	if a.Entropy != b.Entropy || fmt.Sprint(a.Histogram) != fmt.Sprint(b.Histogram) || a.DF11Bytes != b.DF11Bytes {
		t.Errorf("the source is judged otherwise than its DF11 model:\n%+v\n%+v", a, b)
	}
	if math.Abs(a.CodeBits-b.CodeBits) > 0.02 {
		t.Errorf("code %v and %v", a.CodeBits, b.CodeBits)
	}
}
