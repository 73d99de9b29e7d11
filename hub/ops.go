package hub

import "encoding/base64"

// Op is one change of a commit. The zero Op changes nothing.
type Op struct {
	Path   string
	Size   int64  // bytes of the file; 0 for a deletion
	SHA256 string // of the content, for large files

	kind    opKind
	content []byte
}

type opKind int

const (
	opNone opKind = iota // the branch already holds it
	opFile
	opLFS
	opDelete
)

// FileOp puts a small file into the commit itself. The content is borrowed until the commit is done.
func FileOp(path string, content []byte) Op {
	return Op{Path: path, Size: int64(len(content)), kind: opFile, content: content}
}

// LFSOp names a large file whose object the hub already stores.
func LFSOp(path, sha256 string, size int64) Op {
	return Op{Path: path, Size: size, SHA256: sha256, kind: opLFS}
}

// DeleteOp removes a file; the hub refuses the commit if it is not there.
func DeleteOp(path string) Op { return Op{Path: path, kind: opDelete} }

// Payload is the number of bytes that the file adds to the commit's own body.
func (o Op) Payload() int64 {
	if o.kind == opFile {
		return o.Size
	}
	return 0
}

// row is the Op as a line of the commit's body.
func (o Op) row() ndjsonRow {
	switch o.kind {
	case opFile:
		return ndjsonRow{"file", map[string]any{"path": o.Path, "content": base64.StdEncoding.EncodeToString(o.content),
			"encoding": "base64"}}
	case opLFS:
		return ndjsonRow{"lfsFile", map[string]any{"path": o.Path, "algo": "sha256", "oid": o.SHA256, "size": o.Size}}
	}
	return ndjsonRow{"deletedFile", map[string]any{"path": o.Path}}
}

// holds says whether a tree is as the Op would make it.
func (o Op) holds(tree map[string]TreeEntry) bool {
	entry, there := tree[o.Path]
	switch o.kind {
	case opFile:
		return there && (entry.BlobID == gitBlobHash(o.content) ||
			entry.SHA256 != "" && entry.SHA256 == hashLike(entry.SHA256, o.content))
	case opLFS:
		return there && entry.SHA256 == o.SHA256
	case opDelete:
		return !there
	}
	return true
}
