package ptx

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// header declares what the small kernels of the tests use.
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

// run runs the kernel k with this body in 64 threads. in has the 64 words 0, 1, 2, ...; out has 64
// words; n is 7.
func run(t *testing.T, body string) error {
	t.Helper()
	m, err := Parse(header + body + "\nret;\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 256)
	for i := range 64 {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(i))
	}
	var mem Memory
	dst, src := mem.Output("out", make([]byte, 256), 0), mem.Input("in", in, 0)
	_, err = m.Kernels["k"].Run(&mem, Launch{Grid: 1, Block: 64, SharedBytes: 256, Args: []uint64{dst, src, 7}, MaxSteps: 20000})
	return err
}

// Everything that must not happen is reported with the right words.
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
		{"read of an unwritten byte", "ld.shared.u32 %r4, [%r3];", "never written"},
		{"two barriers", "setp.gt.u32 %p1, %r1, 31; @%p1 bra a; bar.sync 0; bra.uni b; a: bar.sync 0; b:", "different barriers"},
		{"shuffle in a branch", "setp.eq.s32 %p1, %r1, 3; @%p1 shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;", "shuffle for lanes"},
		{"endless loop", "again: bra.uni again;", "step limit"},
	} {
		err := run(t, c.body)
		var f *Fault
		if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
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
		if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}
