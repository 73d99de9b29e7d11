package pipeline

import (
	"container/list"
	"context"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
)

// A remote file that is read at random is fetched in blocks of this size, and a model keeps this many of them.
const (
	remoteBlock  = 4 << 20
	remoteBlocks = 24
)

// blockCache keeps the last blocks of a model's remote files. Readers of the same block wait for one request.
type blockCache struct {
	mu     sync.Mutex
	blocks map[blockKey]*list.Element
	order  *list.List // of *cachedBlock, latest first
}

type blockKey struct {
	path  string
	index int64
}

type cachedBlock struct {
	key  blockKey
	once sync.Once
	data []byte
	err  error
}

func newBlockCache() *blockCache {
	return &blockCache{blocks: map[blockKey]*list.Element{}, order: list.New()}
}

// get finds a block or makes a place for it, and drops the one that was not used for longest.
func (c *blockCache) get(key blockKey) *cachedBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.blocks[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*cachedBlock)
	}
	b := &cachedBlock{key: key}
	c.blocks[key] = c.order.PushFront(b)
	if c.order.Len() > remoteBlocks {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.blocks, last.Value.(*cachedBlock).key)
	}
	return b
}

// drop forgets a block that could not be read, so that the next reader tries again.
func (c *blockCache) drop(b *cachedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.blocks[b.key]; ok && e.Value.(*cachedBlock) == b {
		c.order.Remove(e)
		delete(c.blocks, b.key)
	}
}

// hubReaderAt reads a Hub file at random, by blocks.
type hubReaderAt struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one command
	client *hub.Client
	ref    hub.FileRef
	cache  *blockCache
}

func (h *hubReaderAt) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at := off + int64(done)
		if at >= h.ref.Size {
			return done, io.EOF
		}
		b, err := h.block(at / remoteBlock)
		if err != nil {
			return done, err
		}
		done += copy(p[done:], b[at%remoteBlock:])
	}
	return done, nil
}

// block is one block of the file, from the cache or the Hub.
func (h *hubReaderAt) block(i int64) ([]byte, error) {
	b := h.cache.get(blockKey{h.ref.Path, i})
	b.once.Do(func() {
		off := i * remoteBlock
		b.data, b.err = h.client.ReadRange(h.ctx, h.ref, off, min(remoteBlock, h.ref.Size-off))
	})
	if b.err != nil {
		h.cache.drop(b)
	}
	return b.data, b.err
}
