package encoder

import (
	"context"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// encode runs both passes over a unit in memory.
func (o options) encode(sizes []int64, bf16 []byte, workers int) (e plain.Unit, err error) {
	c, err := o.newCounter(sizes)
	if err != nil {
		return e, err
	}
	c.addAll(bf16, workers)
	u, err := c.Finish()
	if err != nil {
		return e, err
	}
	e, dst := u.newEncoded()
	return e, u.Encode(context.Background(), alloc.Memory(bf16), dst, workers)
}

// addAll counts a whole unit, in as many concurrent pieces as there are workers.
func (c *Counter) addAll(bf16 []byte, workers int) {
	var wg sync.WaitGroup
	n := len(bf16) / 2
	for i := range workers {
		from, end := n*i/workers, n*(i+1)/workers
		wg.Go(func() { c.Add(int64(from), bf16[2*from:2*end]) })
	}
	wg.Wait()
}

// newEncoded allocates all six tensors and a Dst that fills them.
func (u *Unit) newEncoded() (plain.Unit, Dst) {
	buf := make(map[string]alloc.Memory)
	for _, t := range u.Tensors() {
		buf[t.Name] = make(alloc.Memory, t.NBytes)
	}
	e := plain.Unit{
		LUTs: buf[NameLUTs], EncodedExponent: buf[NameEncodedExponent], SignMantissa: buf[NameSignMantissa],
		OutputPositions: buf[NameOutputPositions], Gaps: buf[NameGaps], SplitPositions: buf[NameSplitPositions],
	}
	return e, func(name string) io.WriterAt { return buf[name] }
}
