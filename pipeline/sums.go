package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/sha256pair"
)

// sumLocal gives the sha256, in hex, of weight file i of a local source, which is at path and has so many bytes.
func sumLocal(ctx context.Context, local localFiles, i int, path string, size int64) (string, error) {
	f, err := local.File(i)
	if err != nil {
		return "", fmt.Errorf("source file %s: %w", path, err)
	}
	sum, err := sumReader(ctx, io.NewSectionReader(f, 0, size))
	if err != nil {
		return "", fmt.Errorf("source file %s: %w", path, err)
	}
	return sum, nil
}

// sumAll gives the sha256 of n files, in hex: two at a time on each of so many cores. open is called when a file's turn has
// come, from several goroutines. After an error the sums that are not known are empty.
func sumAll(ctx context.Context, cores, n int, open func(i int) (r io.ReaderAt, size int64, err error)) ([]string, error) {
	sums := make([]string, n)
	g, ctx := errgroup.WithContext(ctx)
	var given atomic.Int64
	for range min(cores, (n+1)/2) {
		g.Go(func() error {
			return sha256pair.SumStreams(ctx, func(context.Context, bool) (*sha256pair.Stream, error) {
				i := int(given.Add(1)) - 1
				if i >= n {
					return nil, nil
				}
				r, size, err := open(i)
				if err != nil {
					return nil, err
				}
				return &sha256pair.Stream{R: r, Size: size, Done: func(sum []byte) error {
					sums[i] = hex.EncodeToString(sum)
					return nil
				}}, nil
			})
		})
	}
	return sums, g.Wait()
}
