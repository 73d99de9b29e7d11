package world_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestCheckpoint: a checkpoint is a safetensors file of its tensors in their order, the same for
// each seed. Its F32 weights are exact in BF16, except for as many as were asked for.
func TestCheckpoint(t *testing.T) {
	make := func(seed uint64) *world.Checkpoint {
		c := world.NewCheckpoint(seed)
		c.Block("layers.0.", "q_proj", "norm")
		c.Add("wide", "F32", 3, 10, 20)
		c.Again("tied")
		return c
	}
	c := make(1)
	b := c.File()
	if !bytes.Equal(b, make(1).File()) || bytes.Equal(b, make(2).File()) {
		t.Error("the seed doesn't decide the weights")
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
	world.Must(t, err)
	if len(h.Tensors) != 5 {
		t.Fatalf("%d tensors", len(h.Tensors))
	}
	for i, x := range h.ByOffset() {
		want := c.Tensors[i]
		if got := b[h.DataStart()+x.Begin:][:x.NBytes()]; x.Name != want.Name || !bytes.Equal(got, want.Data) {
			t.Errorf("tensor %d is %s, want %s", i, x.Name, want.Name)
		}
	}
	inexact, tied := 0, c.Tensors[4]
	for i := 0; i < len(tied.Data); i += 4 {
		if binary.LittleEndian.Uint16(tied.Data[i:]) != 0 {
			inexact++
		}
	}
	if inexact != 3 || tied.Name != "tied" || !bytes.Equal(tied.Data, c.Tensors[3].Data) {
		t.Errorf("%d weights of %s are inexact", inexact, tied.Name)
	}
}

// TestSeeds: DF11_SEED repeats one case, and DF11_DEEP tries all.
func TestSeeds(t *testing.T) {
	t.Setenv("DF11_DEEP", "")
	t.Setenv("DF11_SEED", "")
	if s := world.Seeds(t, 2, 5); len(s) != 2 || s[0] != 1 || s[1] != 2 || world.Stride(7) != 7 || world.Deep() {
		t.Errorf("few: %v", s)
	}
	t.Setenv("DF11_DEEP", "1")
	if s := world.Seeds(t, 2, 5); len(s) != 5 || world.Stride(7) != 1 || !world.Deep() {
		t.Errorf("many: %v", s)
	}
	t.Setenv("DF11_SEED", "9")
	if s := world.Seeds(t, 2, 5); len(s) != 1 || s[0] != 9 {
		t.Errorf("one: %v", s)
	}
}

// TestFiles: what is written is what is read, in folders too.
func TestFiles(t *testing.T) {
	dir, files := t.TempDir(), map[string][]byte{"a.txt": []byte("a"), "b/c/d.txt": []byte("d"), "empty": {}}
	world.WriteAll(t, dir, files)
	got := world.ReadAll(t, dir)
	if len(got) != len(files) || string(got["b/c/d.txt"]) != "d" || string(got["a.txt"]) != "a" {
		t.Errorf("%q", got)
	}
	if sum := world.Sum([]byte("abc")); sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("SHA-256 of abc: %s", sum)
	}
}

// TestShapes: names in braces are written out in their order, and a shape is a list of numbers.
func TestShapes(t *testing.T) {
	for text, want := range map[string][]string{
		"a.b": {"a.b"}, "a.{0-2,7}.b": {"a.0.b", "a.1.b", "a.2.b", "a.7.b"}, "{9-10}": {"9", "10"},
		"{0,3}.x.{1-2}": {"0.x.1", "0.x.2", "3.x.1", "3.x.2"},
	} {
		if got := world.Unbrace(t, text); !slices.Equal(got, want) {
			t.Errorf("%s stands for %q", text, got)
		}
	}
	if got := world.Shape(t, "4096x1x128"); !slices.Equal(got, []int64{4096, 1, 128}) {
		t.Errorf("4096x1x128 is %d", got)
	}
}
