package metadata_test

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// TestClean checks that a card has no value that the Hub refuses, whatever the source's card has,
// that the run can name each value that's gone, and that nothing else is.
func TestClean(t *testing.T) {
	token := "hf_" + strings.Repeat("aB", 17) // put together, for secret scanners
	for lines, want := range map[string]struct{ card, named string }{
		"license: mit\nbase_model: org/a":                             {card: "license: mit base_model: org/a"},
		"license: mit\nbase_model: /home/someone/Llama":               {card: "license: mit", named: "/home/someone/Llama"},
		`base_model: 'C:\models\x'`:                                   {named: `C:\\models\\x`},
		"base_model:\n- org/a\n- ./out/checkpoint-500":                {card: "base_model: org/a", named: "./out/checkpoint-500"},
		"base_model: org/a\nbase_model_relation: sft":                 {card: "base_model: org/a", named: "sft"},
		"base_model: org/a\nbase_model_relation: [merge, quantized]":  {card: "base_model: org/a base_model_relation: merge", named: "merge"},
		"language:\n- noinfo\n- de\n- zh-CN":                          {card: "language: de", named: "noinfo zh-CN"},
		"language: no":                                                {card: "language: no"},
		"datasets: [/var/data/images/, org/d, some speech 960h]":      {card: "datasets: org/d", named: "/var/data/images/ some speech 960h"},
		"pipeline_tag: Text Generation":                               {named: "Text Generation"},
		"license: My Own License":                                     {card: "license: other license_name: My Own License", named: "My Own License"},
		"license: My Own\nlicense_name: own-1\nlicense_link: LICENSE": {card: "license: other license_name: own-1 license_link: LICENSE", named: "My Own"},
		"license: MIT":                           {card: "license: other license_name: MIT", named: "MIT mit?"},
		"license: other":                         {card: "license: other license_name: unknown", named: "license_name"},
		"license: other\nlicense_name: x":        {card: "license: other license_name: x"},
		"license: [mit, other]\nlicense_name: x": {card: "license: mit other license_name: x"},
		"license: /home/me/LICENSE\nlicense_link: file:///home/me/L":    {named: "/home/me/LICENSE file:///home/me/L"},
		"license: mit\nlicense_link: https://x/y\ntags: [/home/me, ok]": {card: "license: mit license_link: https://x/y", named: "/home/me"},
		"prior: org/prior":                                 {card: "prior: org/prior"},
		"prior: ../prior":                                  {named: "../prior"},
		"license: mit\nlicense_name: " + token:             {card: "license: mit", named: "license_name"},
		"license: " + token:                                {named: "license"},
		"license_link: https://me:" + token + "@x/y":       {named: "license_link"},
		"datasets: [null, '']\nlicense:\nlanguage: {a: b}": {},
		"license: mit\nlicense_link: javascript:alert(1)":  {card: "license: mit", named: "javascript:alert(1)"},
		"license: mit\nlicense_name: \"a\\n\\n# b\"":       {card: "license: mit", named: `a\n\n`},
		"license_link: legal/terms.txt":                    {card: "license_link: legal/terms.txt"},
	} {
		f := frontMatter(t, lines)
		did := strings.Join(f.Clean(), "; ")
		b, err := yaml.Marshal(f)
		must(t, err)
		var card map[string]any
		must(t, yaml.Unmarshal(b, &card))
		if faults := hubrules.CheckCard(card); len(faults) > 0 {
			t.Errorf("%s: the Hub refuses %v", lines, faults)
		}
		var got []string
		for _, key := range []string{"license", "license_name", "license_link", "base_model", "base_model_relation", "language", "datasets", "pipeline_tag", "prior"} {
			if v, ok := card[key]; ok {
				got = append(got, key+": "+strings.Trim(fmt.Sprint(v), "[]"))
			}
		}
		if strings.Join(got, " ") != want.card {
			t.Errorf("%s: got %s", lines, got)
		}
		if (did == "") != (want.named == "") {
			t.Errorf("%s: named %q", lines, did)
		}
		if strings.Contains(did, token) {
			t.Errorf("%s: named the token", lines)
		}
		for _, word := range strings.Fields(want.named) {
			if !strings.Contains(did, word) {
				t.Errorf("%s: named %q, want %q", lines, did, word)
			}
		}
		again := f
		if more := again.Clean(); more != nil {
			t.Errorf("%s: cleaned twice: %q", lines, more)
		}
	}
	f := frontMatter(t, "license: other\nlicense_name: x\nlicense_link: y")
	f.SetLicense("mit")
	if in := (metadata.CardInput{CardSource: metadata.CardSource{Source: f}}); in.Source.LicenseText() != "mit" {
		t.Errorf("got %q", in.Source.LicenseText())
	}
}

// TestRepeatedMember checks that a front matter with a member twice is refused for that.
func TestRepeatedMember(t *testing.T) {
	_, err := metadata.ParseFrontMatter([]byte("---\nlicense: mit\ntags: [a]\nlicense: apache-2.0\n---\n"))
	if err == nil || !strings.HasSuffix(err.Error(), "it has license twice") {
		t.Error(err)
	}
}

// TestCleanedValuesAreHarmless gives every member values that a page must not show, and wants none
// of them to be left: of license_link, only https addresses and the paths of files, and nothing but
// single lines of the others.
func TestCleanedValuesAreHarmless(t *testing.T) {
	bad := []string{"javascript:alert(1)", "JavaScript:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)", "\x01javascript:alert(1)",
		"data:text/html,<script>", "vbscript:x", "//evil.org/x", "https:evil", "https:///x", "../../settings", "/settings", "http://x/y",
		"https://x/y\n\n# A heading", "https://x/\" onclick=\"x", "a\r\nb", "a\u2028b", "a\u2029b", "a\u0085b", "a\x00b", "a\x1b[2Jb"}
	keys := []string{"license", "license_name", "license_link", "library_name", "base_model", "base_model_relation", "pipeline_tag",
		"language", "datasets", "tags", "prior"}
	for _, key := range keys {
		for _, value := range bad {
			b, err := yaml.Marshal(map[string]any{key: []string{value}})
			must(t, err)
			f := frontMatter(t, strings.TrimSpace(string(b)))
			did := f.Clean()
			left := fmt.Sprintf("%q", f)
			if strings.ContainsAny(value, "\n\r\x00\x1b\u2028\u2029\u0085") || key == "license_link" {
				if quoted := strings.Trim(fmt.Sprintf("%q", value), `"`); strings.Contains(left, quoted) || len(did) == 0 {
					t.Errorf("%s: %q: left %s, said %q", key, value, left, did)
				}
			}
		}
	}
}
