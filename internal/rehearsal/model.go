//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// shardBytes deals the tensors of 126 layers to 191 files, as the published repo has them.
const shardBytes = 4_773_000_000

// repeatBytes is how much of a file's weights is really made; the rest repeats it. It is odd in weights, so that every
// block of the encoder sees another part of it.
const repeatBytes = 2 * (16<<20 + 1)

// Shapes of the real model; a scale divides all but the layers.
func shapes(o options, scale int) hubtest.ModelOptions {
	return hubtest.ModelOptions{
		Layers: o.layers, Hidden: 16384 / scale, Intermediate: 53248 / scale, Heads: 128, KVHeads: 8, HeadDim: 128 / scale,
		Vocab: 128256 / scale, ShardBytes: shardBytes / int64(scale*scale),
	}
}

// serve puts the model on the server: shapes and names of the real one, weights that look trained. A model that is scaled
// down is converted with the pattern dict of the full one, which has as many units.
func (p *program) serve(ctx context.Context, s *hubtest.Server, o options) (*hubtest.Model, error) {
	full, partOnly := hubtest.NewLlama(405, shapes(o, 1)), o.finish == 0 && o.shard != ""
	if err := serveRepeated(s, source, full, partOnly || o.scale > 1); err != nil {
		return nil, err
	}
	p.source = []string{source}
	if o.scale == 1 {
		return full, nil
	}
	dict := filepath.Join(p.home, "dict.json")
	if _, err := p.plan(ctx, o, "--disk", "12GB", "--sample-bytes", "0", "--write-pattern-dict", dict); err != nil {
		return nil, err
	}
	m := hubtest.NewLlama(405, shapes(o, o.scale))
	p.source = []string{source + "-scaled", "--pattern-dict", dict}
	if partOnly {
		return m, serveRepeated(s, source+"-scaled", m, true)
	}
	s.AddModel(source+"-scaled", m)
	return m, nil
}

// serveRepeated adds a model whose weights repeat; unread says that no hash will be compared, so that none is computed.
func serveRepeated(s *hubtest.Server, name string, m *hubtest.Model, unread bool) error {
	weights, err := pattern()
	if err != nil {
		return err
	}
	s.AddRepo(name, m.Small)
	for i, w := range m.Weights {
		body, err := newRepeated(w, weights)
		if err != nil {
			return err
		}
		sum := ""
		if unread {
			sum = fmt.Sprintf("%064x", i+1) // ranges are covered by no hash
		}
		if _, err := s.AddGenerated(name, w.Path, w.Size, sum, body); err != nil {
			return err
		}
	}
	return nil
}

// pattern makes the weights that all matrices repeat.
func pattern() ([]byte, error) {
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Layers: 1, Hidden: 1024, Intermediate: 3072, Vocab: 4096})
	w := m.Weights[0]
	start, err := dataStart(w)
	if err != nil {
		return nil, err
	}
	p := make([]byte, repeatBytes)
	n := w.Size - start
	if n > int64(len(p)) {
		n = int64(len(p))
	}
	if _, err := w.Body.ReadAt(p[:n], start); err != nil && err != io.EOF {
		return nil, err
	}
	for at := int(n); at < len(p); {
		at += copy(p[at:], p[:n])
	}
	return p, nil
}

func dataStart(w hubtest.Generated) (int64, error) {
	var first [8]byte
	if _, err := w.Body.ReadAt(first[:], 0); err != nil {
		return 0, err
	}
	return 8 + int64(binary.LittleEndian.Uint64(first[:])), nil
}

// repeated is a weight file with its own header and repeated weights. It is read at the speed of memory.
type repeated struct {
	head    []byte
	weights []byte
	size    int64
}

func newRepeated(w hubtest.Generated, weights []byte) (*repeated, error) {
	start, err := dataStart(w)
	if err != nil {
		return nil, err
	}
	head := make([]byte, start)
	if _, err := w.Body.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return &repeated{head, weights, w.Size}, nil
}

// ReadAt implements io.ReaderAt.
func (r *repeated) ReadAt(p []byte, off int64) (int, error) {
	want := len(p)
	p = p[:max(0, min(int64(want), r.size-off))]
	n := 0
	if off < int64(len(r.head)) {
		n = copy(p, r.head[off:])
	}
	for n < len(p) {
		at := (off + int64(n) - int64(len(r.head))) % int64(len(r.weights))
		n += copy(p[n:], r.weights[at:])
	}
	if n < want {
		return n, io.EOF
	}
	return n, nil
}
