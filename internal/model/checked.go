package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// A checkedReader hashes what it reads. It returns io.EOF only if the hash is right.
type checkedReader struct {
	io.ReadCloser
	hash hash.Hash
	want string
	path string
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.hash.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
			return n, OtherHash(c.path, got, c.want)
		}
	}
	return n, err
}

// Sum returns the hash of a file of the kind that the ETag like is, or its SHA-256 if like is "".
// If the file's own ETag is of that kind, it returns that and reads nothing.
func Sum(ctx context.Context, open func(ctx context.Context, path string) (io.ReadCloser, error),
	f plan.File, like string) (string, error) {
	if f.ETag != "" && len(f.ETag) == len(like) {
		return f.ETag, nil
	}
	h := hub.NewHash(like, f.Size)
	r, err := open(ctx, f.Path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if _, err := streams.Copy(ctx, h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Hashes are those of a file's content.
type Hashes struct{ SHA256, Git string }

// Hashes returns the hashes of a local source's file without weights, for a comparison. It reads
// the file once: from then on, the file must stay as it is, because a result may get it only as it
// was compared. [Model.CheckCompared] checks that.
func (m *Model) Hashes(ctx context.Context, src Source, f plan.File) (Hashes, error) {
	if h, ok := m.compared[f.Path]; ok {
		return h, nil
	}
	r, err := src.OpenFile(ctx, f.Path)
	if err != nil {
		return Hashes{}, err
	}
	defer r.Close()
	h, blob := sha256.New(), hub.NewHash("git", f.Size)
	if _, err := streams.Copy(ctx, io.MultiWriter(h, blob), r); err != nil {
		return Hashes{}, err
	}
	found := Hashes{hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(blob.Sum(nil))}
	m.note(f.Path, found)
	return found, nil
}

// note notes what a file must have from now on.
func (m *Model) note(file string, h Hashes) {
	if m.compared == nil {
		m.compared = map[string]Hashes{}
	}
	m.compared[file] = h
}

// bind notes the hashes of a small file's content, as [Model.Hashes] does. If there are other ones,
// it returns a ChangedError.
func (m *Model) bind(file string, content []byte) error {
	sum := sha256.Sum256(content)
	blob := hub.NewHash("git", int64(len(content)))
	blob.Write(content)
	found := Hashes{hex.EncodeToString(sum[:]), hex.EncodeToString(blob.Sum(nil))}
	if _, known := m.compared[file]; !known {
		m.note(file, found)
	}
	return m.CheckCompared(file, found.SHA256)
}

// unbind makes [Model.CheckCompared] return a ChangedError for a file, whatever its hash is.
func (m *Model) unbind(file string) { m.note(file, Hashes{}) }

// CheckCompared returns a ChangedError if a file had another SHA-256 when it was compared.
func (m *Model) CheckCompared(file, sum string) error {
	if h, ok := m.compared[file]; ok && h.SHA256 != sum {
		return &ChangedError{File: file}
	}
	return nil
}

// CheckDescription is [Model.CheckCompared] of the files that describe the model, which were read
// when the source was opened.
func (m *Model) CheckDescription() error {
	for file, b := range map[string][]byte{path.Join(m.Listing.Dir, names.Config): m.Listing.Config,
		names.ModelIndex: m.Listing.ModelIndex} {
		sum := sha256.Sum256(b)
		if err := m.CheckCompared(file, hex.EncodeToString(sum[:])); b != nil && err != nil {
			return err
		}
	}
	return nil
}

// What a sample has of a file.
const (
	samplePieces = 32       // at most one more
	sampleBytes  = 16 << 10 // of each
)

// sample returns a hash of pieces all over a file. It differs between two local models of one
// shape, and needs little reading. It's no proof: bytes between the pieces may differ.
func sample(file io.ReaderAt, size int64) (string, error) {
	h, b := sha256.New(), make([]byte, sampleBytes)
	step := max(size/samplePieces, sampleBytes)
	for at := int64(0); at < size; at += step {
		piece := b[:min(size-at, sampleBytes)]
		if err := streams.ReadFull(file, piece, at); err != nil {
			return "", err
		}
		h.Write(piece)
	}
	return fmt.Sprintf("sample %x", h.Sum(nil)), nil
}
