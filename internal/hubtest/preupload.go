package hubtest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"path"
	"regexp"
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
	text := ""
	for p := range strings.FieldsSeq(`*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model *.msgpack
		*.npy *.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* *.tar
		*.tflite *.tgz *.wasm *.xz *.zip *.zst *tfevents*`) {
		text += attributesLine(p)
	}
	return text
}()

func attributesLine(pattern string) string {
	return strings.ReplaceAll(pattern, " ", "[[:space:]]") + " filter=lfs diff=lfs merge=lfs -text\n"
}

// rule is one line of .gitattributes or .gitignore; the last match decides.
type rule struct {
	paths *regexp.Regexp
	on    bool
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
		p, on := fields[0], true
		if attributes {
			on = strings.Contains(line, "filter=lfs")
			if !on && !strings.Contains(line, "filter") {
				continue
			}
		} else if rest, negated := strings.CutPrefix(p, "!"); negated {
			p, on = rest, false
		}
		if paths, err := gitPattern(p); err == nil {
			out = append(out, rule{paths, on})
		}
	}
	return out
}

// globs turns what is special in a pattern of git, after QuoteMeta, into a regular expression: ** spans folders.
var globs = strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`, `\[`, `[`, `\]`, `]`)

// gitPattern matches the files that a pattern names, and all files in the folders that it names. A pattern without a slash
// names files and folders anywhere, one with a slash counts from the root, and one that ends in a slash names folders only.
func gitPattern(p string) (*regexp.Regexp, error) {
	p, dir := strings.CutSuffix(p, "/")
	below := "(/.*)?"
	if dir {
		below = "/.*"
	}
	if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	return regexp.Compile("^" + globs.Replace(regexp.QuoteMeta(strings.TrimPrefix(p, "/"))) + below + "$")
}

func (rs rules) match(file string) bool {
	on := false
	for _, r := range rs {
		if r.paths.MatchString(file) {
			on = r.on
		}
	}
	return on
}

// wantsLFS is the hub's decision at preupload: by name, by size, by a look at the first bytes. Empty files are always
// plain, because the storage refuses them.
func (c *config) wantsLFS(rs rules, file string, sample []byte, size int64) bool {
	if size == 0 || path.Base(file) == attributesFile {
		return false
	}
	return rs.match(file) || size >= c.lfsThreshold || bytes.IndexByte(sample, 0) >= 0
}
