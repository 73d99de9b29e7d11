package sha256pair

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"hash"
	"math/rand/v2"
	"testing"
)

// same compares what a hash would give, and the state that it saves, with those of crypto/sha256 for data.
func same(t *testing.T, h hash.Hash, data []byte) {
	t.Helper()
	want := sha256.New()
	want.Write(data)
	if !bytes.Equal(h.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes: wrong sum", len(data))
	}
	got, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	saved, _ := want.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil || !bytes.Equal(got, saved) {
		t.Errorf("%d bytes: saved state differs from that of crypto/sha256: %v", len(data), err)
	}
}

func data(seed uint64, n int) []byte {
	b := make([]byte, n+8)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := 0; i < n; i += 8 {
		x := rng.Uint64()
		for j := range 8 {
			b[i+j] = byte(x >> (8 * j))
		}
	}
	return b[:n]
}

// TestLengths tries every place in a block for either message to be at, and every length around the limits.
func TestLengths(t *testing.T) {
	p, q := data(1, 1<<17), data(2, 1<<17)
	lengths := []int{0, 1, minBytes - 1, minBytes, minBytes + 1, minBytes + 63, minBytes + 64, 5000, maxBlocks*blockSize + 1, 1 << 16}
	for i := range blockSize {
		j := (i * 37) % blockSize
		for k, n := range lengths {
			m := lengths[(k+i)%len(lengths)]
			a, b := sha256.New(), sha256.New()
			a.Write(p[:i])
			b.Write(q[:j])
			Write(a, b, p[i:i+n], q[j:j+m])
			same(t, a, p[:i+n])
			same(t, b, q[:j+m])
		}
	}
}

// TestMeetings lets five messages advance in random pairs and steps.
func TestMeetings(t *testing.T) {
	const n = 300_000
	rng := rand.New(rand.NewPCG(3, 0))
	var messages [5][]byte
	var hashes [5]hash.Hash
	var at [5]int
	for i := range messages {
		messages[i], hashes[i] = data(uint64(i), n), sha256.New()
	}
	step := func(i int) []byte {
		from := at[i]
		at[i] = min(n, from+rng.IntN(1<<rng.IntN(17)))
		return messages[i][from:at[i]]
	}
	for range 2000 {
		i := rng.IntN(5)
		j := (i + 1 + rng.IntN(4)) % 5
		Write(hashes[i], hashes[j], step(i), step(j))
	}
	for i := range messages {
		same(t, hashes[i], messages[i][:at[i]])
	}
}

// TestOneSource hashes overlapping bytes, which callers may share.
func TestOneSource(t *testing.T) {
	p := data(1, 10_000)
	a, b := sha256.New(), sha256.New()
	Write(a, b, p[1:], p[:9000])
	same(t, a, p[1:])
	same(t, b, p[:9000])
}

// TestLongMessage restores states whose lengths need more than 32 bits.
func TestLongMessage(t *testing.T) {
	var hashes [4]hash.Hash
	for i := range hashes {
		hashes[i] = sha256.New()
		saved, err := save(hashes[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		saved[lengthAt+2], saved[lengthAt+3] = 1, 0xff
		if err := hashes[i].(encoding.BinaryUnmarshaler).UnmarshalBinary(saved); err != nil {
			t.Fatal(err)
		}
	}
	p, q := data(1, 5000), data(2, 6000)
	Write(hashes[0], hashes[1], p, q)
	hashes[2].Write(p)
	hashes[3].Write(q)
	for i := range 2 {
		if !bytes.Equal(hashes[i].Sum(nil), hashes[i+2].Sum(nil)) {
			t.Errorf("message %d: wrong sum", i)
		}
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("abc"), []byte{}, uint16(5000), uint16(70), uint16(3), uint16(0))
	f.Add([]byte{}, []byte{1}, uint16(64), uint16(1024), uint16(1024), uint16(4096))
	f.Fuzz(func(t *testing.T, p, q []byte, growP, growQ, atP, atQ uint16) {
		p, q = append(p, data(1, int(growP))...), append(q, data(2, int(growQ))...)
		i, j := min(int(atP), len(p)), min(int(atQ), len(q))
		a, b := sha256.New(), sha256.New()
		Write(a, b, p[:i], q[:j])
		Write(b, a, q[j:], p[i:])
		same(t, a, p)
		same(t, b, q)
	})
}

// The benchmarks hash two messages of 1 MiB: one after the other, and together.
func BenchmarkTwice(b *testing.B) {
	bench(b, func(x, y hash.Hash, p, q []byte) { x.Write(p); y.Write(q) })
}

func BenchmarkWrite(b *testing.B) { bench(b, Write) }

func bench(b *testing.B, write func(x, y hash.Hash, p, q []byte)) {
	p, q := data(1, 1<<20), data(2, 1<<20)
	b.SetBytes(2 << 20)
	b.ReportAllocs()
	x, y := sha256.New(), sha256.New()
	for b.Loop() {
		write(x, y, p, q)
	}
}

// TestForm fails when a Go release saves the state in another form: everything would still be right, but slow.
func TestForm(t *testing.T) {
	if !knownForm() {
		t.Error("crypto/sha256 saves its state in a form that this package does not know")
	}
}
