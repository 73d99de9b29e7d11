package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/gather"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// nUnits is how many units, and so how many output files, the file steps make of the weights.
const nUnits = 8

// files is what the file steps work on: the weights in a file, and a folder for the results.
type files struct {
	dir    string
	source *os.File
	size   int64
	made   []*atomicfile.File
}

// newFiles writes the weights to a file, which thereby lies in the page cache.
func newFiles(tb testing.TB, weights []byte) *files {
	s := &files{dir: tb.TempDir(), size: int64(len(weights))}
	name := filepath.Join(s.dir, "weights")
	if err := os.WriteFile(name, weights, 0o666); err != nil {
		tb.Fatal(err)
	}
	var err error
	if s.source, err = os.Open(name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.clean(); _ = s.source.Close() })
	return s
}

// clean removes the results, which were never forced to the disk.
func (s *files) clean() {
	for _, f := range s.made {
		f.Cleanup()
	}
	s.made = nil
}

// output is an output file that waits for its hash.
type output struct {
	file *atomicfile.File
	size int64
}

// convert makes one file of each unit, preallocated, and hashes it while the next one is encoded, as the pipeline does.
func (s *files) convert(path string, verified bool) work {
	return func(ctx context.Context, cores int) error {
		g, ctx := errgroup.WithContext(ctx)
		made := make(chan output)
		g.Go(func() error {
			defer close(made)
			for i := range int64(nUnits) {
				f, err := s.unit(ctx, path, i, cores, verified)
				if err != nil {
					return fmt.Errorf("unit %d: %w", i, err)
				}
				select {
				case made <- f:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
		g.Go(func() error { return hashAll(ctx, made) })
		return g.Wait()
	}
}

// count is pass 1 over a whole unit.
func count(ctx context.Context, c *encoder.Counter, src *io.SectionReader, cores int) error {
	const block = 256 << 10
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range cores {
		g.Go(func() error {
			buf := make([]byte, block)
			for ctx.Err() == nil {
				off := next.Add(block) - block
				n := min(block, src.Size()-off)
				if n <= 0 {
					break
				}
				if err := streams.ReadFull(src, buf[:n], off); err != nil {
					return err
				}
				c.Add(off/2, buf[:n])
			}
			return context.Cause(ctx)
		})
	}
	return g.Wait()
}

// unit encodes unit i from file to file.
func (s *files) unit(ctx context.Context, path string, i int64, cores int, verified bool) (output, error) {
	from, end := s.size/2*i/nUnits, s.size/2*(i+1)/nUnits
	src, sizes := io.NewSectionReader(s.source, 2*from, 2*(end-from)), []int64{end - from}
	c, err := variant(path).NewCounter(sizes)
	if err != nil {
		return output{}, err
	}
	if err := count(ctx, c, src, cores); err != nil {
		return output{}, err
	}
	u, err := c.Finish()
	if err != nil {
		return output{}, err
	}
	out, layout, err := s.create(u, i)
	if err != nil {
		return output{}, err
	}
	offset := func(name string) int64 { t, _ := layout.Lookup(name); return layout.DataStart() + t.Begin }
	w := gather.New(out.file)
	dst := dstOf(func(name string) io.WriterAt { return io.NewOffsetWriter(w, offset(name)) })
	if err := u.Encode(ctx, src, dst, cores); err != nil {
		return output{}, err
	}
	if err := w.Flush(); err != nil {
		return output{}, err
	}
	if !verified {
		return out, nil
	}
	return out, compare(ctx, path, sizes, src, cores, arraysOf(func(name string) *io.SectionReader {
		t, _ := layout.Lookup(name)
		return io.NewSectionReader(out.file, offset(name), t.NBytes())
	}))
}

// create makes the output file with its header, and takes its room on the disk.
func (s *files) create(u *encoder.Unit, i int64) (output, *safetensors.Layout, error) {
	var entries []safetensors.Entry
	for _, t := range u.Tensors() {
		entries = append(entries, safetensors.Entry{Name: t.Name, DType: safetensors.DType(t.DType), Shape: t.Shape})
	}
	layout, err := safetensors.NewLayout(nil, entries)
	if err != nil {
		return output{}, nil, err
	}
	f, err := atomicfile.Create(filepath.Join(s.dir, fmt.Sprintf("unit-%d.safetensors", i)), layout.Size)
	if err != nil {
		return output{}, nil, err
	}
	s.made = append(s.made, f)
	_, err = f.WriteAt(layout.Header, 0)
	return output{f, layout.Size}, layout, err
}

// compare verifies a unit from its stored bytes. A path that the verifier does not have is its best one.
func compare(ctx context.Context, path string, sizes []int64, src io.ReaderAt, cores int, a verify.Arrays) error {
	if !slices.Contains(verify.Variants(), path) {
		path = ""
	}
	v, err := verify.Open(a, sizes[0], sizes)
	if err != nil {
		return err
	}
	return v.Compare(ctx, src, verify.CompareOptions{Workers: cores, Variant: path})
}

// hashAll hashes every file in a goroutine of its own.
func hashAll(ctx context.Context, made <-chan output) error {
	g, ctx := errgroup.WithContext(ctx)
	for f := range made {
		g.Go(func() error {
			_, err := streams.SHA256(ctx, io.NewSectionReader(f.file, 0, f.size))
			return err
		})
	}
	return g.Wait()
}
