package encoder

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// counted runs pass 1 over a unit in memory.
func (o options) counted(t testing.TB, sizes []int64, bf16 []byte, workers int) (*Counter, *histogram) {
	t.Helper()
	c, err := o.newCounter(sizes)
	must(t, err)
	c.addAll(bf16, workers)
	total, err := c.total()
	must(t, err)
	return c, total
}

// newTestUnit makes a unit in memory, whether or not DF11 can hold it.
func newTestUnit(t testing.TB, o options, bf16 []byte) *Unit {
	t.Helper()
	c, total := o.counted(t, []int64{int64(len(bf16) / 2)}, bf16, 1)
	book := buildCodebook(total)
	rows, _ := book.luts()
	return c.unit(book, total, rows)
}

// TestCount compares the histograms of every variant with plain counting, piece after piece, so
// that each piece uses what the pieces before it taught.
func TestCount(t *testing.T) {
	for _, l := range variants() {
		tally := new(tally)
		for _, s := range append([]shape{strays}, shapes...) {
			bf16 := s.weights(4, 60000)
			for _, n := range []int{1, 1000, 1024, 5000, 8192, 4096, 60000, 59999, 30000} {
				var want histogram
				want.add(bf16[:2*n])
				if got := tally.count(&l, bf16[:2*n]); *got != want {
					t.Errorf("%s, %s, %d elements: wrong histogram", l.name, s.name, n)
				}
			}
		}
	}
}

// A unit allocates only its counts and small tables.
func TestUnitsShareBuffers(t *testing.T) {
	bf16 := shapes[0].weights(5, 2*blockElems)
	var out nowhere
	dst := func(string) io.WriterAt { return out }
	alloc.Repeated(t, 64<<10, func() {
		must(t, newTestUnit(t, options{}, bf16).Encode(t.Context(), bytes.NewReader(bf16), dst, 1))
	})
}

// nowhere discards what is written.
type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// strays is trained data with a few exponents of any size. Some share their low bits with frequent
// exponents.
var strays = shape{"strays", func(r *rand.Rand) byte {
	switch r.IntN(100) {
	case 0:
		return byte(r.IntN(240))
	case 1:
		return trainedSymbol(r) - 64
	}
	return trainedSymbol(r)
}}

// shortCodes mostly have 1 or 2 bits, longCodes 4 to 9.
var (
	shortCodes = shape{"short", func(r *rand.Rand) byte { return byte(1 + r.IntN(60)*r.IntN(60)/59*r.IntN(60)/3500) }}
	longCodes  = shape{"longer", func(r *rand.Rand) byte { return byte(70 + r.IntN(20)*(1+r.IntN(2)) + r.IntN(2)) }}
)

// TestAppend compares the append loops with one append per element. It starts after any number of
// elements, so at every bit of a window, and checks which groups the loops take.
func TestAppend(t *testing.T) {
	list := variants()
	for _, s := range append([]shape{strays, shortCodes, longCodes}, shapes...) {
		for before := range 70 {
			bf16 := s.weights(uint64(before), before+stripElems)
			u := newTestUnit(t, options{}, bf16)
			table := newPairTable(u.book)
			for _, l := range list {
				for _, p := range l.pacesFor(table, 0) {
					if d := testAppend(u, &l, p, table, bf16, before); d != "" {
						t.Errorf("%s, %s, %d elements behind %d: %s", l.name, s.name, p.elems, before, d)
					}
				}
			}
		}
	}
}

// testAppend runs a loop over a strip and describes how the result differs from plain appending.
func testAppend(u *Unit, l *loops, p pace, table *pairTable, bf16 []byte, before int) string {
	var sm [stripElems]byte
	var idx strip
	l.split(&sm, (*[2 * stripElems]byte)(bf16[2*before:]), &idx, table.width)
	want, got := &appended{}, &appended{}
	want.plain(u, bf16[:2*before])
	got.plain(u, bf16[:2*before])
	at := got.w.at
	took := p.loop(&got.w, table, idx[:], (*stretch)(got.coded[at:]), (*stretch)(got.marks[at:]))
	if wantTook := want.groups(u, bf16[2*before:], p); took != wantTook {
		return fmt.Sprintf("%d groups, want %d", took, wantTook)
	}
	// What follows must find the streams in a valid state.
	rest := bf16[2*(before+took*p.elems):]
	want.plain(u, rest[:min(len(rest), 100)])
	got.plain(u, rest[:min(len(rest), 100)])
	return got.diff(want, p)
}

// appended are the streams that an append loop made.
type appended struct {
	w            bitWriter
	coded, marks [2 * len(stretch{})]byte
}

// plain appends element by element.
func (s *appended) plain(u *Unit, bf16 []byte) {
	for ; len(bf16) > 0; bf16 = bf16[2:] {
		e := exponent(bf16)
		n := uint64(u.book.nBits[e])
		s.w.append(uint64(u.book.bits[e]), 1<<(n-1), n, s.coded[:], s.marks[:])
	}
}

// groups appends groups until the next is too long for the pace, and returns their number.
func (s *appended) groups(u *Unit, bf16 []byte, p pace) (n int) {
	for ; len(bf16) >= 2*p.elems && p.takes(u, bf16, s.w.pos()%windowBits); n, bf16 = n+1, bf16[2*p.elems:] {
		s.plain(u, bf16[:2*p.elems])
	}
	return n
}

// takes reports whether the first group is short enough for a pace, by the rules of
// pairTable and appendLoop. at is where in a window it begins.
func (p pace) takes(u *Unit, bf16 []byte, at int) bool {
	parts, mostOfPart, most := 2, 32, 56
	if p.low {
		parts, mostOfPart, most = 8, 64, 511-at
	}
	var part [8]int
	sum := 0
	for i := range p.elems {
		bits := int(u.book.nBits[exponent(bf16[2*i:])])
		part[parts*i/p.elems] += bits
		sum += bits
		if p.low && bits > maxLowBits || part[parts*i/p.elems] > mostOfPart {
			return false
		}
	}
	return sum <= most
}

// diff compares up to the last bit. The loops with lowCodes make other marks, but the same gaps.
func (s *appended) diff(want *appended, p pace) string {
	if s.w.pos() != want.w.pos() || s.w.n != want.w.n {
		return "wrong number of bits"
	}
	end := (s.w.pos() + octetBits - 1) / octetBits * octetBits / 8
	for _, s := range []*appended{s, want} {
		s.w.flush(end, s.coded[:], s.marks[:])
	}
	if !bytes.Equal(s.coded[:end], want.coded[:end]) {
		return "wrong codes"
	}
	got, gaps := make([]byte, end), make([]byte, end)
	packGaps(got, s.marks[:end])
	packGaps(gaps, want.marks[:end])
	if !bytes.Equal(got, gaps) || !p.low && !bytes.Equal(s.marks[:end], want.marks[:end]) {
		return "wrong marks"
	}
	return ""
}

// TestPaces checks that each variant takes the pace made for some data, so that no data goes one
// element at a time.
func TestPaces(t *testing.T) {
	for _, l := range variants() {
		for _, x := range []struct {
			shape             shape
			elems, elemsOfLow int
		}{{shapes[0], 16, 128}, {shapes[1], 16, 128}, {shapes[3], 16, 128}, {longCodes, 8, 64}} {
			u := newTestUnit(t, options{loops: &l}, x.shape.weights(9, stripElems))
			want := x.elems
			if l.paces[0].low {
				want = x.elemsOfLow
			}
			if p := l.pacesFor(newPairTable(u.book), float64(u.nBits())/stripElems); len(p) == 0 || p[0].elems != want {
				t.Errorf("%s, %s: not %d elements at a time", l.name, x.shape.name, want)
			}
		}
	}
}
