package kernel

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// header declares what the little kernels of the tests use.
const header = `
.version 6.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)
{
	.reg .pred %p<8>;
	.reg .b16 %rs<8>;
	.reg .b32 %r<16>;
	.reg .b64 %rd<16>;
	ld.param.u64 %rd0, [out];
	ld.param.u64 %rd1, [in];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd0, %rd2;
	add.s64 %rd4, %rd1, %rd2;
	shl.b32 %r2, %r1, 2;
	mov.u32 %r3, memory;
	add.s32 %r3, %r3, %r2;
`

// run runs a kernel of 64 threads with n as its last argument.
func run(t *testing.T, body string, n uint64) ([]uint32, error) {
	t.Helper()
	m, err := parsePTX([]byte(header + body + "\nret;\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return m.run64(n)
}

// run64 runs the kernel k in 64 threads. in has 64 words, 0, 1, 2, ...; out has 64.
func (m *module) run64(n uint64) ([]uint32, error) {
	var mem memory
	in, out := make([]byte, 256), make([]byte, 256)
	for i := range 64 {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(i))
	}
	dst, src := mem.output("out", out, 0), mem.input("in", in, 0)
	_, err := m.kernels["k"].run(&mem, launch{grid: 1, block: 64, sharedBytes: 256, args: []uint64{dst, src, n}, maxSteps: 20000})
	words := make([]uint32, 64)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(out[4*i:])
	}
	return words, err
}

// TestValues computes one value per thread in %r4 and compares it with Go's.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       func(i uint32) uint32
	}{
		{"mad", "mad.lo.s32 %r4, %r1, %r0, %r1;", func(i uint32) uint32 { return i*7 + i }},
		{"negative", "add.s32 %r4, %r1, -40;", func(i uint32) uint32 { return i - 40 }},
		{"signed shift", "add.s32 %r4, %r1, -40; shr.s32 %r4, %r4, 2;", func(i uint32) uint32 { return uint32(int32(i-40) >> 2) }},
		{"large shift", "shl.b32 %r4, %r0, %r1;", func(i uint32) uint32 { return 7 << i }},
		{"signed compare", "add.s32 %r4, %r1, -40; setp.lt.s32 %p1, %r4, 0; selp.b32 %r4, 1, 2, %p1;", func(i uint32) uint32 {
			if i < 40 {
				return 1
			}
			return 2
		}},
		{"popc and clz", "popc.b32 %r4, %r1; clz.b32 %r5, %r1; shl.b32 %r5, %r5, 8; or.b32 %r4, %r4, %r5;", func(i uint32) uint32 {
			ones, zeros := uint32(0), uint32(32)
			for v := i; v != 0; v >>= 1 {
				ones += v & 1
				zeros--
			}
			return ones | zeros<<8
		}},
		{"fields", "bfe.u32 %r4, %r1, 1, 3; bfi.b32 %r4, %r4, %r0, 8, 4;", func(i uint32) uint32 { return 7&^0xf00 | i>>1&7<<8 }},
		{"permute", "prmt.b32 %r4, %r1, %r0, 0x0415;", func(i uint32) uint32 { return i<<24 | 7<<16 }},
		{"funnel", "shf.l.clamp.b32 %r4, %r1, %r0, 32; shf.l.wrap.b32 %r5, %r1, %r0, 32; xor.b32 %r4, %r4, %r5;", func(i uint32) uint32 { return i ^ 7 }},
		{"narrow", "cvt.u16.u32 %rs1, %r1; neg.s16 %rs1, %rs1; cvt.s32.s16 %r4, %rs1;", func(i uint32) uint32 { return -i }},
		{"wide", "mul.wide.u32 %rd5, %r1, 0x80000000; shr.u64 %rd5, %rd5, 30; cvt.u32.u64 %r4, %rd5;", func(i uint32) uint32 { return 2 * i }},
		{"parts", "mul.wide.u32 %rd5, %r1, 0xc0000000; mov.b64 {%r4, %r5}, %rd5; xor.b32 %r4, %r4, %r5;", func(i uint32) uint32 {
			return i*0xc0000000 ^ uint32(uint64(i)*0xc0000000>>32)
		}},
		{"shuffle up", "shfl.sync.up.b32 %r4, %r1, 3, 0, -1;", func(i uint32) uint32 {
			if i%32 >= 3 {
				return i - 3
			}
			return i
		}},
		{"shuffle down", "shfl.sync.down.b32 %r4, %r1, 1, 31, -1;", func(i uint32) uint32 {
			if i%32 < 31 {
				return i + 1
			}
			return i
		}},
		{"shuffle by number", "shfl.sync.idx.b32 %r4, %r1, 5, 31, -1;", func(i uint32) uint32 { return i&^31 + 5 }},
		{"loop of different lengths", `
			mov.u32 %r4, 0;
			and.b32 %r5, %r1, 7;
		again:
			add.s32 %r4, %r4, 2;
			setp.eq.s32 %p1, %r5, 0;
			@%p1 bra out;
			add.s32 %r5, %r5, -1;
			bra.uni again;
		out:
			shfl.sync.idx.b32 %r6, %r4, 31, 31, -1;
			add.s32 %r4, %r4, %r6;`, func(i uint32) uint32 { return 2*(i&7) + 2 + 16 }},
		{"through shared memory", `
			st.shared.u32 [%r3], %r1;
			bar.sync 0;
			xor.b32 %r5, %r2, 252;
			ld.shared.u32 %r4, [memory];
			mov.u32 %r6, memory;
			add.s32 %r6, %r6, %r5;
			ld.shared.u32 %r4, [%r6];`, func(i uint32) uint32 { return 63 - i }},
	} {
		got, err := run(t, c.body+"\nst.global.u32 [%rd3], %r4;", 7)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		wantThreads(t, c.name, got, c.want)
	}
}

// wantThreads compares what each thread has with what it should have, and names the first that differs.
func wantThreads(t *testing.T, name string, got []uint32, want func(thread uint32) uint32) {
	t.Helper()
	for i, v := range got {
		if want := want(uint32(i)); v != want {
			t.Errorf("%s: thread %d has %#x, not %#x", name, i, v, want)
			break
		}
	}
}

// TestFaults demands that what must not happen is reported, with the right words.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"read outside", "ld.global.u32 %r4, [%rd4+4];", "4 bytes at 256 of in"},
		{"read before", "ld.global.u32 %r4, [%rd4+-4];", "4 bytes at -4 of in"},
		{"write outside", "st.global.u32 [%rd3+4], %r1;", "4 bytes at 256 of out"},
		{"write to the input", "st.global.u32 [%rd4], %r1;", "write to in"},
		{"no buffer", "mov.u64 %rd5, 64; ld.global.u32 %r4, [%rd5];", "in no buffer"},
		{"unaligned", "ld.global.u32 %r4, [%rd4+2];", "not aligned"},
		{"unaligned vector", "ld.global.v2.u32 {%r4, %r5}, [%rd4];", "not aligned"},
		{"shared outside", "st.shared.u32 [%r3+4], %r1;", "which has 256"},
		{"shared unaligned", "ld.shared.u32 %r4, [%r3+1];", "not aligned"},
		{"read after a write", "st.shared.u32 [%r3], %r1; xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4];", "was written by thread"},
		{"write after a read", "st.shared.u32 [%r3], %r1; bar.sync 0; xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r3], %r1;", "was read by another"},
		{"two writers of a byte", "and.b32 %r4, %r3, -8; st.shared.u8 [%r4], %rs1;", "was written by thread"},
		{"two writers outside", "st.global.u32 [%rd0], %r1;", "race"},
		{"barrier in a branch", "setp.eq.s32 %p1, %r1, 3; @%p1 bar.sync 0;", "barrier reached by lanes"},
		{"barrier after a return", "setp.eq.s32 %p1, %r1, 3; @%p1 ret; bar.sync 0;", "barrier missed"},
		{"barrier missed by a warp", "setp.gt.u32 %p1, %r1, 31; @%p1 ret; bar.sync 0;", "barrier missed"},
		{"read of what nobody wrote", "ld.shared.u32 %r4, [%r3];", "never written"},
		{"two barriers", "setp.gt.u32 %p1, %r1, 31; @%p1 bra a; bar.sync 0; bra.uni b; a: bar.sync 0; b:", "different barriers"},
		{"shuffle in a branch", "setp.eq.s32 %p1, %r1, 3; @%p1 shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;", "shuffle for lanes"},
		{"endless loop", "again: bra.uni again;", "step limit"},
	} {
		_, err := run(t, c.body, 7)
		var f *fault
		if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// TestNoise demands that registers do not start as zero.
func TestNoise(t *testing.T) {
	got, err := run(t, "st.global.u32 [%rd3], %r9;", 7)
	if err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for _, v := range got {
		if v == 0 {
			zeros++
		}
	}
	if zeros > 2 {
		t.Errorf("%d of 64 values are 0 without having been set", zeros)
	}
}

// TestRaceAcrossBarriers demands that barriers do divide.
func TestRaceAcrossBarriers(t *testing.T) {
	got, err := run(t, `
		st.shared.u32 [%r3], %r1;
		bar.sync 0;
		xor.b32 %r5, %r3, 4;
		ld.shared.u32 %r4, [%r5];
		bar.sync 0;
		st.shared.u32 [%r5], %r4;
		st.global.u32 [%rd3], %r4;`, 7)
	if err != nil || got[8] != 9 {
		t.Errorf("%d, %v", got[8], err)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"opcode", header + "frobnicate.b32 %r1, %r2; ret; }", "frobnicate"},
		{"register", header + "add.s32 %r1, %r99, 1; ret; }", "%r99"},
		{"label", header + "bra nowhere; ret; }", "nowhere"},
		{"generic address", header + "ld.u32 %r1, [%rd1]; ret; }", "generic"},
		{"float", header + "add.f32 %r1, %r2, %r3; ret; }", "f32"},
		{"barrier with threads", header + "bar.sync 0, 32; ret; }", "bar.sync 0"},
		{"no end", header + "ret;", "without an end"},
		{"text", "what is this?", "character"},
		{"directive", ".func f { }", ".func"},
	} {
		if _, err := parsePTX([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

func TestLaunchErrors(t *testing.T) {
	m, err := parsePTX([]byte(header + "ret; }"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.entry("k")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []launch{
		{grid: 0, block: 32, args: make([]uint64, 3)},
		{grid: 1, block: 33, args: make([]uint64, 3)},
		{grid: 1, block: 32, args: make([]uint64, 2)},
		{grid: 1, block: 32, args: make([]uint64, 3), sharedBytes: -1},
	} {
		if _, err := k.run(new(memory), l); err == nil {
			t.Errorf("launch %+v works", l)
		}
	}
	if _, err := m.entry("other"); err == nil {
		t.Error("there is a kernel that does not exist")
	}
}

// FuzzParse demands that no text makes the parser panic.
func FuzzParse(f *testing.F) {
	f.Add(header + "ret; }")
	f.Add(header + "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [memory+16]; @!%p1 bra x; x: ret; }")
	f.Add(header + "@; }")
	f.Add(header + "@!; }")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parsePTX([]byte(text)) })
}
