package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestGlobalFlagsMayStandBeforeTheCommand: however they are written, the word behind them is the command or the source.
func TestGlobalFlagsMayStandBeforeTheCommand(t *testing.T) {
	for _, flags := range [][]string{
		{}, {"-q"}, {"-qv"}, {"--log-format", "text"}, {"--log-format=text", "-v"}, {"--json=true", "--log-format", "text", "-vq"},
	} {
		for word, command := range map[string]bool{"verify": true, "help": true, "./verify": false, "org/name": false} {
			args := append(slices.Clone(flags), word)
			want := args
			if !command {
				want = append([]string{convertName}, args...)
			}
			if got := withCommand(rootCommand(newUI(os.Stdout, os.Stderr), args), args); !slices.Equal(got, want) {
				t.Errorf("%q becomes %q", args, got)
			}
		}
	}
}

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
