package hubrules

import (
	"fmt"
	"strings"
	"testing"
)

// TestCard has the values of public bug reports, which the threads in card.go show refused, and
// others that the Hub takes.
func TestCard(t *testing.T) {
	for want, cards := range map[string][]map[string]any{
		"": {
			{}, {"base_model": "org/name", "base_model_relation": "quantized", "license": "apache-2.0"},
			{"base_model": []any{"org/a", "gpt2"}, "language": []any{"en", "no", "deu", "code"}, "datasets": "imdb"},
			{"license": "other", "license_name": "My License", "license_link": "LICENSE", "unknown": 7},
			{"pipeline_tag": "text-generation", "library_name": "transformers", "tags": []any{"df11"}},
		},
		"base_model":          {{"base_model": "/home/someone/work/Llama-3.1-8B"}, {"base_model": ""}, {"base_model": nil}, {"base_model": "a/b/c"}},
		"base_model[1]":       {{"base_model": []any{"org/name", "./out/checkpoint-500"}}},
		"base_model_relation": {{"base_model_relation": "sft"}, {"base_model_relation": []any{"merge"}}},
		"datasets[0]":         {{"datasets": []any{"/var/data/images/"}}, {"datasets": []any{nil}}},
		"datasets":            {{"datasets": "librispeech 960h"}},
		"language":            {{"language": "noinfo"}, {"language": "zh-CN"}, {"language": "en_unnorm"}, {"language": false}},
		"license":             {{"license": "My Own License"}, {"license": "gpl-2.0-or-later"}},
		"license_name":        {{"license": "other"}},
		"pipeline_tag":        {{"pipeline_tag": "Text Generation"}},
		"tags[1]":             {{"tags": []any{"a", 1.0}}},
	} {
		for _, card := range cards {
			got := ""
			for _, f := range CheckCard(card) {
				got += f.Where()
				if key := f.Key; !strings.HasPrefix(f.Message, fmt.Sprintf("%q", f.Where())) || !strings.HasPrefix(f.Where(), key) {
					t.Errorf("%v: %q", card, f.Message)
				}
			}
			if got != want {
				t.Errorf("%v: refused is %q, want %q", card, got, want)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	many := func(n int, dir string) (list []File) {
		for i := range n {
			list = append(list, File{fmt.Sprintf("%s%d", dir, i), 1})
		}
		return list
	}
	for name, c := range map[string]struct {
		files            []File
		refused, advised string
	}{
		"as many as allowed": {many(FolderFiles, ""), "", ""},
		"one more":           {many(FolderFiles+1, ""), "10,001 files in one folder (the repo's own), and a folder on the Hub has at most 10,000", ""},
		"one more, below":    {many(FolderFiles+1, "a/b/"), "10,001 files in one folder (a/b), and a folder on the Hub has at most 10,000", ""},
		"two folders":        {append(many(FolderFiles, "a/"), many(FolderFiles, "b/")...), "", ""},
		"large":              {[]File{{"x", AdvisedFileBytes + 1}}, "", "x has 201 GB, and the Hub advises at most 200 GB"},
		"too large":          {[]File{{"x", 553e9}}, "x has 553 GB, and a file on the Hub has at most 500 GB", ""},
	} {
		text := func(list []Problem) (s string) {
			for _, p := range list {
				s += p.Text
			}
			return s
		}
		refused, advised := CheckFiles(c.files)
		if text(refused) != c.refused || text(advised) != c.advised {
			t.Errorf("%s: %q, %q", name, refused, advised)
		}
	}
}

func TestPrivate(t *testing.T) {
	if CheckPrivate(PrivateBytes) != nil {
		t.Error("what an account has is too much")
	}
	const want = "with --push, the repo is private and has 101 GB; a free account has 100 GB of private storage"
	if got := CheckPrivate(101_000_000_000); len(got) != 1 || got[0].Text != want {
		t.Errorf("got %v", got)
	}
}
