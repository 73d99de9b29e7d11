package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// Every kind of spool holds what is written to it in any order, has the right end, releases its
// budget once, and leaves no file. A kept spool stays until it's released.
func TestSpools(t *testing.T) {
	o := &spans.Output{Path: "o.safetensors", Size: 3 << 20}
	for name, c := range map[string]struct{ memory, keep bool }{"memory": {memory: true}, "file": {}, "kept file": {keep: true}} {
		dir := t.TempDir()
		r := &Room{
			Dir: world.Root(t, dir), Disk: NewBudget(o.Size), Memory: NewBudget(o.Size),
			InMemory: map[*spans.Output]bool{o: c.memory}, Keep: c.keep,
		}
		s, err := r.New(t.Context(), o)
		if err != nil {
			t.Fatal(name, err)
		}
		write(t, s, bytes.Repeat([]byte{2}, 2<<20), 1<<20)
		write(t, s, bytes.Repeat([]byte{1}, 1<<20), 0)
		check(t, name, s)
		if budget := map[bool]*Budget{true: r.Memory, false: r.Disk}[c.memory]; budget.TryAcquire(1) {
			t.Errorf("%s: its budget is not used up", name)
		}
		if s.Kept != c.keep {
			t.Errorf("%s: is said to be kept: %v", name, !c.keep)
		}
		if err := s.Close(); err != nil {
			t.Error(name, err)
		}
		for _, budget := range []*Budget{r.Memory, r.Disk} {
			if !budget.TryAcquire(o.Size) {
				t.Errorf("%s: the budget was not given back", name)
			}
			budget.Release(o.Size)
		}
		if _, err := os.Stat(filepath.Join(dir, names.KeptSpool(o.Path))); (err == nil) != c.keep {
			t.Errorf("%s: %v", name, err)
		}
		if !c.keep {
			continue
		}
		again, err := r.Open(t.Context(), o)
		if err != nil || again == nil {
			t.Fatal(again, err)
		}
		check(t, name, again)
		if err := errors.Join(again.Release(), again.Release()); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left (%v)", name, left, err)
		}
	}
}

func write(t *testing.T, s *Spool, p []byte, off int64) {
	t.Helper()
	if n, err := s.WriteAt(p, off); n != len(p) || err != nil {
		t.Error(n, err)
	}
}

// check expects 1 MiB of ones and 2 MiB of twos.
func check(t *testing.T, name string, s *Spool) {
	t.Helper()
	p := make([]byte, 4)
	if _, err := s.ReadAt(p, 1<<20-2); err != nil || !bytes.Equal(p, []byte{1, 1, 2, 2}) {
		t.Errorf("%s: %v, %v", name, p, err)
	}
	if n, err := s.ReadAt(p, 3<<20-1); n != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("%s: %d bytes at the end, %v", name, n, err)
	}
}

// A spool of sections reads across them and has the right end.
func TestInPlace(t *testing.T) {
	section := func(text string, off, n int64) *io.SectionReader {
		return io.NewSectionReader(strings.NewReader(text), off, n)
	}
	s := InPlace([]*io.SectionReader{section("..head..", 2, 4), section("nothing", 3, 0), section("tail", 1, 3)})
	got, err := io.ReadAll(io.NewSectionReader(s, 0, 7))
	if string(got) != "headail" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	p := make([]byte, 4)
	if n, err := s.ReadAt(p, 5); n != 2 || !errors.Is(err, io.EOF) || string(p[:n]) != "il" {
		t.Errorf("%q, %v", p[:n], err)
	}
	short := InPlace([]*io.SectionReader{section("tail", 0, 9)})
	if _, err := short.ReadAt(make([]byte, 9), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that is shorter than its section: %v", err)
	}
}

// A request above the whole budget would wait forever, so it's an error.
func TestBudgetRefusesTheImpossible(t *testing.T) {
	if err := NewBudget(10).Acquire(t.Context(), 11); err == nil {
		t.Error("11 of 10 bytes are granted")
	}
	if err := NewBudget(0).Acquire(t.Context(), 1<<60); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// must ends the test if err isn't nil.
