package hubtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ModelOptions shapes a generated model. Zero fields mean the defaults: one file of about 0.6 MB.
type ModelOptions struct {
	Layers       int // 2
	Hidden       int // 64
	Intermediate int // 3 × Hidden
	Heads        int // 4
	KVHeads      int // Heads / 2
	HeadDim      int // Hidden / Heads
	Vocab        int // 512

	Tied       bool  // config says tied, and lm_head.weight is not stored
	StoreTied  bool  // with Tied: lm_head.weight is stored, equal to the embedding
	ShardBytes int64 // largest size of the tensors in one file; 0 is one file
	Order      Order // of the tensors over the files
	// also original/, consolidated.safetensors, pytorch_model.bin, an image
	ExtraFiles bool
	// if set: make this many bytes of weights, and fill all files with them again and again
	Repeat int64
	Extra  map[string][]byte // further files; nil content leaves a file out
}

// OwnPicture are further files of a model that brings the card's picture itself: to draw one takes
// longer than the rest of a tiny conversion.
var OwnPicture = map[string][]byte{"df11.png": []byte("a picture")}

// An Order is how tensors are spread over the files.
type Order int

// The orders that real repos have, and the worst one.
const (
	OrderModel     Order = iota // as the model class defines them
	OrderName                   // sorted by name: layer 10 before layer 2
	OrderScattered              // all q_proj, then all k_proj, …: a unit is everywhere
)

// A Model is a generated model: weight files whose bytes are made when they're read, and the small
// files next to them.
type Model struct {
	Small   map[string][]byte
	Weights []Generated
}

// A Generated is a file whose bytes are a function of the offset.
type Generated struct {
	Path string
	Size int64
	Body io.ReaderAt // safe for concurrent use
}

// NewLlama makes a Llama-shaped model: no biases, and its own lm_head unless Tied.
func NewLlama(seed uint64, opt ModelOptions) *Model {
	return newModel(seed, opt, family{architecture: "LlamaForCausalLM", modelType: "llama"})
}

// NewQwen3 makes a Qwen3-shaped model: norms for queries and keys.
func NewQwen3(seed uint64, opt ModelOptions) *Model {
	return newModel(seed, opt,
		family{architecture: "Qwen3ForCausalLM", modelType: "qwen3", qkNorm: true})
}

// NewQwen2 makes a Qwen2-shaped model: biases for queries, keys and values.
func NewQwen2(seed uint64, opt ModelOptions) *Model {
	return newModel(seed, opt,
		family{architecture: "Qwen2ForCausalLM", modelType: "qwen2", qkvBias: true})
}

func (o ModelOptions) withDefaults() ModelOptions {
	o.Layers = cmp.Or(o.Layers, 2)
	o.Hidden = cmp.Or(o.Hidden, 64)
	o.Intermediate = cmp.Or(o.Intermediate, 3*o.Hidden)
	o.Heads = cmp.Or(o.Heads, 4)
	o.KVHeads = cmp.Or(o.KVHeads, max(1, o.Heads/2))
	o.HeadDim = cmp.Or(o.HeadDim, o.Hidden/o.Heads)
	o.Vocab = cmp.Or(o.Vocab, 512)
	return o
}

// newModel returns a model of the caller's own, who may change its small files and its list of
// weights.
func newModel(seed uint64, opt ModelOptions, fam family) *Model {
	extra := opt.Extra
	opt.Extra = nil
	made := kept(seed, opt.withDefaults(), fam)
	m := &Model{Small: maps.Clone(made.Small), Weights: slices.Clone(made.Weights)}
	for p, content := range extra {
		if content == nil {
			delete(m.Small, p)
			continue
		}
		m.Small[p] = content
	}
	return m
}

// maxKept is the size of the largest model whose bytes are kept.
const maxKept = 16 << 20

// made keeps small models for the whole process, because tests make the same few again and again.
var made sync.Map

// kept returns a model, and makes it if needed.
func kept(seed uint64, opt ModelOptions, fam family) *Model {
	key := fmt.Sprint(seed, opt, fam)
	if m, ok := made.Load(key); ok {
		return m.(*Model)
	}
	m := generate(seed, opt, fam)
	if m.Size() > maxKept {
		return m
	}
	for _, g := range m.Weights {
		g.Body.(*shard).keep()
	}
	first, _ := made.LoadOrStore(key, m)
	return first.(*Model)
}

func generate(seed uint64, opt ModelOptions, fam family) *Model {
	tensors := fam.tensors(seed, opt)
	opt.Order.sort(tensors)
	shards := pack(tensors, opt.ShardBytes)
	m := &Model{Small: fam.smallFiles(opt)}
	block := make([]byte, opt.Repeat)
	_, _ = tensor{name: "repeated", shape: []int{int(opt.Repeat)/2048 + 1, 1024}, seed: seed,
		std: 0.025}.ReadAt(block, 0)
	for _, s := range shards {
		s.repeat = block
		m.Weights = append(m.Weights, Generated{Path: s.path, Size: s.size, Body: s})
	}
	if len(shards) > 1 {
		m.Small["model.safetensors.index.json"] = indexJSON(shards)
	}
	if opt.ExtraFiles {
		maps.Copy(m.Small, extraFiles(shards[0]))
	}
	return m
}

// sort puts the tensors into the order.
func (o Order) sort(tensors []tensor) {
	switch o {
	case OrderName:
		slices.SortFunc(tensors, func(a, b tensor) int { return strings.Compare(a.name, b.name) })
	case OrderScattered:
		slices.SortStableFunc(tensors,
			func(a, b tensor) int { return strings.Compare(a.suffix(), b.suffix()) })
	}
}

// pack fills files up to limit bytes of tensors and names them as transformers does.
func pack(tensors []tensor, limit int64) []*shard {
	var groups [][]tensor
	var nBytes int64
	for i, t := range tensors {
		if i == 0 || limit > 0 && nBytes+t.nBytes() > limit {
			groups, nBytes = append(groups, nil), 0
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], t)
		nBytes += t.nBytes()
	}
	var shards []*shard
	for i, g := range groups {
		name := "model.safetensors"
		if len(groups) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(groups))
		}
		shards = append(shards, newShard(name, g))
	}
	return shards
}

// Files makes every byte of the model.
func (m *Model) Files() map[string][]byte {
	out := maps.Clone(m.Small)
	for _, g := range m.Weights {
		out[g.Path] = make([]byte, g.Size)
		if _, err := g.Body.ReadAt(out[g.Path], 0); err != nil && err != io.EOF {
			panic("hubtest: internal error: " + err.Error())
		}
	}
	return out
}

// Write writes the model's files to a folder, and creates it. No weight file is in memory as a
// whole.
func (m *Model) Write(dir string) error {
	for name, content := range m.Small {
		if err := write(dir, name, bytes.NewReader(content), int64(len(content))); err != nil {
			return err
		}
	}
	for _, g := range m.Weights {
		if err := write(dir, g.Path, g.Body, g.Size); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, name string, body io.ReaderAt, size int64) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, min(size+1, 4<<20))
	_, err = io.CopyBuffer(struct{ io.Writer }{f},
		struct{ io.Reader }{io.NewSectionReader(body, 0, size)}, block)
	return errors.Join(err, f.Close())
}

// Size is the number of bytes of all weight files.
func (m *Model) Size() (n int64) {
	for _, g := range m.Weights {
		n += g.Size
	}
	return n
}

// AddModel makes a repo of a generated model and returns the commit. It reads each weight file once
// to hash it, and never has a large one in memory as a whole.
func (s *Server) AddModel(name string, m *Model, opts ...RepoOption) string {
	head := s.AddRepo(name, m.Small, opts...)
	for _, g := range m.Weights {
		head, _ = s.AddGenerated(name, g.Path, g.Size, "", g.Body)
	}
	return head
}
