package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// headers reads the headers of weight files, several at a time.
func (f *files) headers(ctx context.Context, weights []plan.File) ([]plan.WeightFile, error) {
	out := make([]plan.WeightFile, len(weights))
	all := safetensors.Headers{Memory: f.memory}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, file := range weights {
		g.Go(func() error {
			h, err := f.header(ctx, &all, file)
			out[i] = plan.WeightFile{File: file, Header: h}
			// a Hub's error names the file
			if _, ofHub := errors.AsType[*hub.Error](err); err != nil && !ofHub {
				err = fmt.Errorf("header of %s: %w", file.Path, err)
			}
			return err
		})
	}
	return out, g.Wait()
}

// header reads one header. It reads a wrong header of a remote file twice: no hash covers a range,
// so the bytes may be damaged, on the way or in the shared cache.
func (f *files) header(ctx context.Context, all *safetensors.Headers,
	file plan.File) (*safetensors.Header, error) {
	if h := f.known[file.Path]; h != nil {
		return all.Parse(h.Raw, file.Size)
	}
	r := f.sparse(ctx, file.Path)
	h, err := readHeader(all, r, file.Size)
	if err == nil || !f.Recheck(ctx, file.Path) {
		return h, err
	}
	return readHeader(all, r, file.Size)
}

func readHeader(all *safetensors.Headers, r io.ReaderAt, size int64) (*safetensors.Header, error) {
	h, err := all.Read(r, size)
	if !errors.Is(err, safetensors.ErrHeaderLength) {
		return h, err
	}
	begin := make([]byte, min(size, maxPointer))
	if streams.ReadFull(r, begin, 0) != nil {
		return nil, err
	}
	if bytes.HasPrefix(begin, []byte(lfsPointer)) {
		return nil, refusePointer("the file", "weights that were")
	}
	if text := firstLine(begin); text != "" {
		return nil, &safetensors.HeaderError{Kind: safetensors.ErrText, Detail: strconv.Quote(text)}
	}
	return nil, err
}

// firstLine returns how a text begins, in at most 60 bytes; "" if it's no text.
func firstLine(b []byte) string {
	text := strings.TrimSpace(string(b))
	for range utf8.UTFMax - 1 { // b may end within a character
		if !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r)
	}) {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n")
	return text[:min(len(text), 60)]
}
