package pipeline

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names its blobs so
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Source gives the bytes of a model. All methods may be called by several goroutines at once and repeated.
type Source interface {
	// Stream reads bytes [off, end) of weight file i, in order. It ends with io.EOF only after all of them. The caller
	// closes it.
	Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error)
	// ReadRange reads n bytes at off of weight file i, for headers and samples.
	ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error)
	// OpenFile reads a file that is not a weight, whole. The reader's last read fails if the bytes are not the
	// published ones.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
}

// localFiles is what a Source also offers if its weight files can be read at random: they are their own spools.
type localFiles interface {
	// File is weight file i; it stays open until the source is closed.
	File(i int) (io.ReaderAt, error)
}

// Model is what is known of a source before its weights move.
type Model struct {
	// ID is "namespace/name" for a Hub repo, or the base name of a local folder or file.
	ID string
	// Name is what the output is named after.
	Name string
	// Local: the source is a folder or file. Commit is the pinned commit of a Hub repo.
	Local  bool
	Commit string
	// Private and Gated say who may read the repo ("", "auto" or "manual").
	Private bool
	Gated   string
	// Card is the front matter of the source's model card; nil if there is none. PipelineTag and LibraryName are what
	// the Hub says of it.
	Card                     *metadata.FrontMatter
	PipelineTag, LibraryName string
	// Plan is the input of plan.New. SHA256 are the published sums of its weight files, "" where there is none.
	Plan   plan.Source
	SHA256 []string
}

// remoteSource is what a Source also offers if it reads from a Hub.
type remoteSource interface {
	hubClient() *hub.Client
}

// doubter is what a Source also offers if it reads copies of files that may be wrong. Doubt checks the copy of a file, and
// tells whether it is damaged; it is then not used again.
type doubter interface {
	Doubt(ctx context.Context, path string) bool
}

// hubSource reads a repo of the Hub at one commit.
type hubSource struct {
	client *hub.Client
	refs   []hub.FileRef // of the weight files
	files  map[string]hub.FileRef
}

func (s *hubSource) hubClient() *hub.Client { return s.client }

// Doubt has the shared cache's copy of a file checked.
func (s *hubSource) Doubt(ctx context.Context, path string) bool {
	before, _ := s.client.CachedPath(s.files[path])
	after, _ := s.client.CheckCached(ctx, s.files[path])
	return before != after && ctx.Err() == nil
}

func (s *hubSource) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	if path, ok := s.client.CachedPath(s.refs[file]); ok {
		return openSection(path, off, end)
	}
	return s.client.Stream(ctx, s.refs[file], off, end)
}

func (s *hubSource) ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error) {
	if path, ok := s.client.CachedPath(s.refs[file]); ok {
		return readSection(path, off, n)
	}
	return s.client.ReadRange(ctx, s.refs[file], off, n)
}

func (s *hubSource) OpenFile(ctx context.Context, path string) (io.ReadCloser, error) {
	ref, ok := s.files[path]
	if !ok {
		return nil, fmt.Errorf("%s: no such file in the repo: %w", path, os.ErrNotExist)
	}
	return openChecked(ctx, s.client, ref)
}

// localSource reads a folder, or one .safetensors file of it.
type localSource struct {
	dir     string
	weights []*os.File
}

func (s *localSource) File(i int) (io.ReaderAt, error) { return s.weights[i], nil }

func (s *localSource) Stream(_ context.Context, file int, off, end int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(s.weights[file], off, end-off)), nil
}

func (s *localSource) ReadRange(_ context.Context, file int, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	if m, err := s.weights[file].ReadAt(b, off); int64(m) < n {
		return nil, readError(err)
	}
	return b, nil
}

func (s *localSource) OpenFile(_ context.Context, path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.dir, filepath.FromSlash(path)))
}

// Close closes the weight files.
func (s *localSource) Close() error {
	for _, f := range s.weights {
		f.Close()
	}
	return nil
}

// sectionFile is a piece of a local file that closes the file with itself.
type sectionFile struct {
	io.Reader
	io.Closer
}

func openSection(path string, off, end int64) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return sectionFile{io.NewSectionReader(f, off, end-off), f}, nil
}

func readSection(path string, off, n int64) ([]byte, error) {
	r, err := openSection(path, off, off+n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, readError(err)
	}
	return b, nil
}

// openChecked streams a whole file from the Hub; its last read fails if the hash is not the published one.
func openChecked(ctx context.Context, c *hub.Client, ref hub.FileRef) (io.ReadCloser, error) {
	if path, ok := c.CheckCached(ctx, ref); ok {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return newCheckedReader(f, ref), nil
	}
	if ref.Size == 0 {
		return io.NopCloser(eofReader{}), nil
	}
	r, err := c.Stream(ctx, ref, 0, ref.Size)
	if err != nil {
		return nil, err
	}
	return newCheckedReader(r, ref), nil
}

// checkedReader hashes what it reads and lets io.EOF through only if the hash is right.
type checkedReader struct {
	io.ReadCloser
	h    hash.Hash
	want string
	path string
}

// newCheckedReader checks a large file by its sha256 and a plain git file by its blob hash (hub-protocol: git hashes
// "blob <size>", a zero byte, and the content).
func newCheckedReader(r io.ReadCloser, ref hub.FileRef) io.ReadCloser {
	switch {
	case ref.SHA256 != "":
		return &checkedReader{r, sha256.New(), ref.SHA256, ref.Path}
	case ref.BlobID != "":
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", ref.Size)
		return &checkedReader{r, h, ref.BlobID, ref.Path}
	}
	return r
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.h.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(c.h.Sum(nil)); got != c.want {
			return n, &SourceError{File: c.path, Want: c.want, Got: got}
		}
	}
	return n, err
}

// fileETag is what pins a file's content in the plan.
func fileETag(ref hub.FileRef) string {
	if ref.SHA256 != "" {
		return ref.SHA256
	}
	return ref.BlobID
}
