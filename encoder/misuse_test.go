package encoder

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
	"time"
)

// TestMisuseIsAnError calls the exported functions with what can't be: the answer is an error.
func TestMisuseIsAnError(t *testing.T) {
	for _, sizes := range [][]int64{nil, {}, {0}, {-1}, {-5, 10}, {10, -5}, {math.MinInt64, math.MaxInt64, 5}, {math.MaxInt64, math.MaxInt64}} {
		if _, err := NewCounter(sizes); err == nil {
			t.Errorf("sizes %d are accepted", sizes)
		}
	}
	weights := shapes[0].weights(1, 1000)
	counted := func(sizes ...int64) *Counter {
		c, err := NewCounter(sizes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		elem int64
		bf16 []byte
	}{
		"half a weight": {0, weights[:1]}, "before": {-1, weights[:2]}, "after": {1000, weights[:2]}, "far": {math.MaxInt64, weights[:2]},
		"too much": {1, weights}, "too little": {0, weights[:4]},
	} {
		counter := counted(400, 600)
		counter.Add(c.elem, c.bf16)
		if _, err := counter.Finish(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	twice := counted(1000)
	twice.Add(0, weights)
	twice.Add(0, weights)
	if _, err := twice.Finish(); err == nil {
		t.Error("counted twice")
	}
	none := &Counter{}
	none.Add(0, weights)
	none.Add(0, nil)
	if _, err := none.Finish(); err == nil {
		t.Error("a counter of nothing has a unit")
	}
	if _, err := new(Counter).Finish(); err == nil {
		t.Error("a counter of nothing has a unit")
	}
	good := counted(0, 1000)
	good.Add(0, weights)
	u, err := good.Finish()
	if err != nil {
		t.Fatal(err)
	}
	sink := func(string) io.WriterAt { return nothing{} }
	for name, err := range map[string]error{
		"no source": u.Encode(t.Context(), nil, sink, 1), "an empty source": u.Encode(t.Context(), bytes.NewReader(nil), sink, -1),
		"no writers": u.Encode(t.Context(), bytes.NewReader(weights), nil, 1),
		"no writer":  u.Encode(t.Context(), bytes.NewReader(weights), func(string) io.WriterAt { return nil }, 1),
		"no unit":    new(Unit).Encode(t.Context(), bytes.NewReader(weights), sink, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, _ = new(Unit).Stats(), new(Unit).Tensors()
	for _, other := range shapes { // the source isn't what was counted: garbage, or an error
		_ = u.Encode(t.Context(), bytes.NewReader(other.weights(2, 1000)), sink, 2)
	}
	for _, name := range append(ArrayNames(), "x", "") {
		for _, shape := range [][]int64{nil, {}, {-1}, {math.MinInt64}, {2, 256, 1}, {math.MaxInt64, math.MaxInt64}} {
			if err := CheckArray(name, "U8", shape); err == nil && IsArrayName(name) {
				t.Errorf("%s %d is accepted", name, shape)
			}
		}
	}
	_, _ = Counts{}.Stored(), Counts{-1, math.MaxInt64, math.MinInt64, math.MaxInt64, 0}.Stored()
}

// nothing takes all bytes.
type nothing struct{}

func (nothing) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// silent reads and writes nothing, and says nothing of it.
type silent struct{}

func (silent) WriteAt([]byte, int64) (int, error) { return 0, nil }
func (silent) ReadAt([]byte, int64) (int, error)  { return 0, nil }

// TestNothingIsTakenForDone checks that Encode notices readers and writers that do nothing, and that
// very many workers start no more goroutines than there are blocks.
func TestNothingIsTakenForDone(t *testing.T) {
	weights := shapes[0].weights(1, 1000)
	c, err := NewCounter([]int64{1000})
	if err != nil {
		t.Fatal(err)
	}
	c.Add(0, weights)
	u, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	sink := func(string) io.WriterAt { return nothing{} }
	for _, name := range ArrayNames() {
		err := u.Encode(t.Context(), bytes.NewReader(weights), func(n string) io.WriterAt {
			if n == name {
				return silent{}
			}
			return nothing{}
		}, 1)
		if !errors.Is(err, io.ErrShortWrite) && name != NameSplitPositions { // empty for one tensor
			t.Errorf("%s isn't written: %v", name, err)
		}
	}
	if err := u.Encode(t.Context(), silent{}, sink, 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nothing is read: %v", err)
	}
	began := time.Now() // a goroutine for each worker would take about a minute
	if err := u.Encode(t.Context(), bytes.NewReader(weights), sink, 1<<24); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("very many workers: %s, %v", time.Since(began), err)
	}
}
