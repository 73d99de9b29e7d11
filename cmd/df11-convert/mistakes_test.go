package main

import (
	"strings"
	"testing"
)

// TestANameThatIsNoModelIsToldOnce: whatever is wrong with it, the message says which name it is about, and says it once.
func TestANameThatIsNoModelIsToldOnce(t *testing.T) {
	for _, name := range []string{
		"no/such/path", "./nowhere", "a/b@", "datasets/a/b", "https://github.com/a/b", "https://huggingface.co/datasets/a/b",
		"https://huggingface.co/a", "https://huggingface.co/a/b/blob/main/x.safetensors", "https://huggingface.co/a/%zz", "hf://a/b@",
	} {
		for _, args := range [][]string{{"plan"}, {"convert", "-o", t.TempDir()}, {"verify"}, {"inspect"}} {
			code, _, stderr := program(t, append(args, name)...)
			message, _, _ := strings.Cut(stderr, "hint:")
			if n := strings.Count(message, strings.TrimPrefix(name, "hf://")); code != exitUsage || n != 1 {
				t.Errorf("%s %s: exit code %d, named %d times: %s", args, name, code, n, stderr)
			}
		}
	}
}
