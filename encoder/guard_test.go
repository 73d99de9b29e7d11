//go:build linux || darwin

package encoder

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// borders says where the memory in a test of this file is: right before or right after a page
// without access.
var borders = [2]string{"behind", "before"}

// TestLoopsStayInTheirMemory runs every inner loop on buffers that end exactly where its comment
// says, at page borders.
func TestLoopsStayInTheirMemory(t *testing.T) {
	for _, l := range variants() {
		for i, border := range borders {
			t.Run(fmt.Sprint(l.name, " ", border), func(t *testing.T) {
				splitAtBorder(t, &l, i)
				countAtBorder(t, &l, i)
				gapsAtBorder(t, &l, i)
				appendAtBorder(t, &l, i)
			})
		}
	}
}

func splitAtBorder(t *testing.T, l *loops, border int) {
	bf16 := alloc.Guarded(t, 2*stripElems)[border]
	sm, idx := alloc.Guarded(t, stripElems)[border], alloc.Guarded(t, len(strip{}))[border]
	for _, width := range []uint{lowWidth, 8} {
		l.split((*[stripElems]byte)(sm), (*[2 * stripElems]byte)(bf16), (*strip)(idx), width)
	}
}

func countAtBorder(t *testing.T, l *loops, border int) {
	tally := new(tally)
	for _, nBytes := range []int{16, 1008, 1024, 2048, 2064, 8176, 8192, 8208, 3*8192 + 48} {
		bf16 := alloc.Guarded(t, nBytes)[border]
		copy(bf16, shapes[0].weights(1, nBytes/2))
		var want histogram
		want.add(bf16)
		for range 2 { // the second time with what the first one learned
			if got := tally.count(l, bf16); *got != want {
				t.Errorf("%d bytes: wrong histogram", nBytes)
			}
		}
	}
}

func gapsAtBorder(t *testing.T, l *loops, border int) {
	for nOctets := range 70 {
		l.gaps(alloc.Guarded(t, 5*nOctets+3)[border], alloc.Guarded(t, nOctets*octetBits/8)[border])
	}
}

// appendAtBorder puts the end of idx at a border. The streams begin at any byte of a window that
// begins at a border.
func appendAtBorder(t *testing.T, l *loops, border int) {
	for _, s := range []shape{shapes[0], shapes[2], shortCodes, longCodes} {
		bf16 := s.weights(1, stripElems)
		u := newTestUnit(t, options{}, bf16)
		made := newPairTable(u.book)
		for _, p := range l.pacesFor(made, 0) {
			table := (*pairTable)(unsafe.Pointer(&alloc.Guarded(t, int(unsafe.Sizeof(pairTable{})))[border][0]))
			*table = *made
			var sm [stripElems]byte
			var whole strip
			splitGo(&sm, (*[2 * stripElems]byte)(bf16), &whole, table.width)
			for _, nElems := range []int{p.elems, 2 * p.elems, stripElems - p.elems, stripElems} {
				idx := alloc.Guarded(t, 2*nElems)[border]
				copy(idx, whole[:])
				for at := range windowBits / 8 {
					coded, marks := alloc.Guarded(t, at+slack)[border], alloc.Guarded(t, at+slack)[border]
					w := bitWriter{at: at, n: uint(at)}
					p.loop(&w, table, idx, (*stretch)(coded[at:]), (*stretch)(marks[at:]))
				}
			}
		}
	}
}
