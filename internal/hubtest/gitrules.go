package hubtest

import (
	"bytes"
	"path"
	"strings"
)

const attributesFile = ".gitattributes"

// defaultAttributes is what a new model repo starts with.
var defaultAttributes = func() string {
	var b strings.Builder
	for _, p := range []string{"*.7z", "*.arrow", "*.bin", "*.bz2", "*.ckpt", "*.ftz", "*.gz", "*.h5", "*.joblib",
		"*.lfs.*", "*.mlmodel", "*.model", "*.msgpack", "*.npy", "*.npz", "*.onnx", "*.ot", "*.parquet", "*.pb",
		"*.pickle", "*.pkl", "*.pt", "*.pth", "*.rar", "*.safetensors", "saved_model/**/*", "*.tar.*", "*.tar",
		"*.tflite", "*.tgz", "*.wasm", "*.xz", "*.zip", "*.zst", "*tfevents*"} {
		b.WriteString(attributesLine(p))
	}
	return b.String()
}()

func attributesLine(pattern string) string {
	return strings.ReplaceAll(pattern, " ", "[[:space:]]") + " filter=lfs diff=lfs merge=lfs -text\n"
}

// rule is one line of .gitattributes or .gitignore; the last match decides.
type rule struct {
	pattern string
	on      bool
	dir     bool // pattern ended in a slash: the folder and all below
}

type rules []rule

// parseRules reads .gitattributes (which patterns are LFS) or .gitignore.
func parseRules(text string, attributes bool) rules {
	var out rules
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		p, on := strings.ReplaceAll(fields[0], "[[:space:]]", " "), true
		if attributes {
			on = strings.Contains(line, "filter=lfs")
			if !on && !strings.Contains(line, "filter") {
				continue
			}
		} else if rest, negated := strings.CutPrefix(p, "!"); negated {
			p, on = rest, false
		}
		trimmed := strings.TrimSuffix(p, "/")
		out = append(out, rule{pattern: trimmed, on: on, dir: trimmed != p})
	}
	return out
}

func (rs rules) match(file string) bool {
	on := false
	for _, r := range rs {
		if r.match(file) {
			on = r.on
		}
	}
	return on
}

// match applies git's reading of patterns: without a slash they match the base name anywhere, with one they match from the
// root; ** spans folders.
func (r rule) match(file string) bool {
	parts := strings.Split(file, "/")
	if !strings.Contains(r.pattern, "/") {
		last := len(parts)
		if r.dir {
			last--
		}
		for _, p := range parts[:last] {
			if ok, _ := path.Match(r.pattern, p); ok {
				return true
			}
		}
		return false
	}
	want := strings.Split(strings.TrimPrefix(r.pattern, "/"), "/")
	for n := len(parts); n > 0; n-- {
		if (n < len(parts) || !r.dir) && matchSegments(want, parts[:n]) {
			return true
		}
	}
	return false
}

func matchSegments(want, have []string) bool {
	if len(want) == 0 {
		return len(have) == 0
	}
	if want[0] == "**" {
		for i := range len(have) + 1 {
			if matchSegments(want[1:], have[i:]) {
				return true
			}
		}
		return false
	}
	if len(have) == 0 {
		return false
	}
	ok, _ := path.Match(want[0], have[0])
	return ok && matchSegments(want[1:], have[1:])
}

// wantsLFS is the hub's decision at preupload: by name, by size, by a look at the first bytes. Empty files are always
// plain, because the storage refuses them.
func (c *config) wantsLFS(rs rules, file string, sample []byte, size int64) bool {
	if size == 0 || path.Base(file) == attributesFile {
		return false
	}
	return rs.match(file) || size >= c.lfsThreshold || bytes.IndexByte(sample, 0) >= 0
}
