package hubtest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strings"
)

type preuploadRequest struct {
	Files []struct {
		Path, Sample string
		Size         int64
	}
}

// preupload answers POST /api/models/{id}/preupload/{rev}: which files go to LFS, which are
// ignored, and which exist.
func preupload(c *call, q preuploadRequest) (any, error) {
	head, err := c.commit()
	if err != nil {
		return nil, err
	}
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
		if c.cfg.wantsLFS(f.Path, sample, f.Size) {
			mode = "lfs"
		}
		m := map[string]any{"path": f.Path, "uploadMode": mode,
			"shouldIgnore": named(head.Files[".gitignore"].content, f.Path)}
		if e, ok := head.Files[f.Path]; ok && !c.cfg.NoHashes {
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

// largeNames are the names of files that a new model repo keeps outside of git.
const largeNames = `*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model *.msgpack *.npy *.npz *.onnx
	*.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* *.tar *.tflite *.tgz *.wasm *.xz *.zip
	*.zst *tfevents*`

// defaultAttributes is the .gitattributes of a new model repo. It's only shown; largeNames decide. A
// commit adds the other large files.
var defaultAttributes = func() (text string) {
	for p := range strings.FieldsSeq(largeNames) {
		text += attributesLine(p)
	}
	return text
}()

// attributesLine is the line of a .gitattributes for files that the hub keeps outside of git.
func attributesLine(pattern string) string {
	return strings.ReplaceAll(pattern, " ", "[[:space:]]") + " filter=lfs diff=lfs merge=lfs -text\n"
}

// named reports whether one of the patterns, separated by spaces, matches a file's name.
func named(patterns, file string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		ok, _ := path.Match(p, path.Base(file))
		return ok
	})
}

// wantsLFS is the hub's decision at preupload: by name, size, and first bytes. Empty files are
// always plain, because the storage refuses them.
func (c *config) wantsLFS(file string, sample []byte, size int64) bool {
	if size == 0 || path.Base(file) == attributesFile {
		return false
	}
	return named(largeNames, file) || size >= c.lfsThreshold || bytes.IndexByte(sample, 0) >= 0
}
