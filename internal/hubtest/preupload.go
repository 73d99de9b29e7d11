package hubtest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"path"
	"strings"
)

// maxPreupload is the number of files that one call may ask about.
const maxPreupload = 256

type preuploadRequest struct {
	Files []struct {
		Path, Sample string
		Size         int64
	}
	GitIgnore, GitAttributes string
}

// preupload answers POST /api/models/{id}/preupload/{rev}: which files go by LFS, which are ignored, which are there
// already.
func preupload(c *call, q preuploadRequest) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
	if len(q.Files) > maxPreupload {
		return nil, fail(http.StatusRequestEntityTooLarge, "too many files: %d", len(q.Files))
	}
	attributes := append(parseRules(head.Files[attributesFile].content, true), parseRules(q.GitAttributes, true)...)
	ignore := append(parseRules(head.Files[".gitignore"].content, false), parseRules(q.GitIgnore, false)...)
	files := []map[string]any{}
	for _, f := range q.Files {
		if err := checkPath(f.Path); err != nil {
			return nil, err
		}
		sample, err := base64.StdEncoding.DecodeString(f.Sample)
		if err != nil {
			return nil, fail(http.StatusBadRequest, "%s: sample is not base64", f.Path)
		}
		mode := "regular"
		if c.cfg.wantsLFS(attributes, f.Path, sample, f.Size) {
			mode = "lfs"
		}
		m := map[string]any{"path": f.Path, "uploadMode": mode, "shouldIgnore": ignore.match(f.Path)}
		if e, ok := head.Files[f.Path]; ok {
			m["oid"] = e.BlobID
			if e.isLFS() {
				m["oid"] = e.SHA256
			}
		}
		files = append(files, m)
	}
	return map[string]any{"files": files, "commitOid": head.OID}, nil
}

const attributesFile = ".gitattributes"

// defaultAttributes is the .gitattributes of a new model repo.
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
	segments []string // of the pattern; ** spans folders
	on       bool
	dir      bool // the pattern ended in a slash: the folder and all below
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
		p, dir := strings.CutSuffix(p, "/")
		if !strings.Contains(p, "/") {
			p = "**/" + p // without a slash a pattern matches a name anywhere, with one it matches from the root
		}
		out = append(out, rule{strings.Split(strings.TrimPrefix(p, "/"), "/"), on, dir})
	}
	return out
}

func (rs rules) match(file string) bool {
	on, parts := false, strings.Split(file, "/")
	for _, r := range rs {
		if r.match(parts) {
			on = r.on
		}
	}
	return on
}

// match says whether the pattern fits a file, or a folder that the file is in.
func (r rule) match(parts []string) bool {
	for n := len(parts); n > 0; n-- {
		if (n < len(parts) || !r.dir) && matchSegments(r.segments, parts[:n]) {
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
