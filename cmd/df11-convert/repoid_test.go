package main

import "testing"

// TestRepoID checks that addresses become the repos that they name, and that other texts stay as
// they are.
func TestRepoID(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "http://mirror:8080")
	for text, want := range map[string]string{
		"org/name": "org/name", "org/name@v1": "org/name@v1", "./folder": "./folder", `C:\models\x`: `C:\models\x`, "": "",
		"https://huggingface.co/org/name":                    "org/name",
		"https://huggingface.co/org/name/":                   "org/name",
		"https://hf.co/org/name?library=transformers":        "org/name",
		"https://huggingface.co/org/name/tree/v1.0":          "org/name@v1.0",
		"https://huggingface.co/org/name/tree/refs%2Fpr%2F1": "org/name@refs/pr/1",
		"hf://org/name": "org/name", "hf://org/name@main": "org/name@main", "huggingface.co/org/name": "org/name", "hf.co/org/name/tree/v1": "org/name@v1",
		"hf://org/name@refs%2Fpr%2F1": "org/name@refs/pr/1", "http://mirror:8080/org/name": "org/name",
	} {
		if got, err := repoID(text); got != want || err != nil {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"https://example.com/org/name", "https://huggingface.co/name", "https://huggingface.co/datasets/org/name",
		"https://huggingface.co/org/name/blob/main/x", "ftp://huggingface.co/org/name", "http://huggingface.co/org/name", "hf://",
	} {
		if got, err := repoID(text); err == nil {
			t.Errorf("%s is taken for %q", text, got)
		}
	}
}
