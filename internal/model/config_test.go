package model_test

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
)

// TestDictOfConfigIsTheLoadersDict checks that neither a second spelling nor a second member hides
// the dict that a loader reads.
func TestDictOfConfigIsTheLoadersDict(t *testing.T) {
	const (
		fixed = `"threads_per_block": [512], "bytes_per_thread": 8`
		right = `{` + fixed + `, "pattern_dict": {"a": ["q", "k"]}}`
		wrong = `{` + fixed + `, "pattern_dict": {"a": ["k", "q"]}}`
	)
	for text, want := range map[string]string{
		`{"dfloat11_config": ` + right + `}`:                                                            `{"a": ["q", "k"]}`,
		`{"dfloat11_config": ` + right + `, "dfloat11_config": ` + wrong + `}`:                          "appears twice",
		`{"dfloat11_config": ` + right + `, "dfloat11_config": {` + fixed + `}}`:                        "appears twice",
		`{"dfloat11_config": ` + wrong + `, "DFloat11_Config": ` + right + `}`:                          "differs from",
		`{"DFloat11_Config": ` + right + `}`:                                                            "differs from",
		`{"dfloat11_config": {` + fixed + `, "pattern_dict": {"a": ["k"]}, "Pattern_Dict": {"a": []}}}`: "differs from",
		`{"dfloat11_config": {"Threads_per_block": [512], ` + fixed + `, "pattern_dict": {"a": []}}}`:   "differs from",
		`{"dfloat11_config": {` + fixed + `, "bytes_per_thread": 8e0, "pattern_dict": {"a": []}}}`:      "cannot unmarshal number",
		`{"dfloat11_config": {` + fixed + `, "pattern_dict": {"a": ["q"], "a": ["k"]}}}`:                "appears twice",
	} {
		dict, err := model.DictOfConfig([]byte(text))
		got := string(dict.AppendJSON(nil, "", ""))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
