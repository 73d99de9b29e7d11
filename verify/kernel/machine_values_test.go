package kernel

import (
	"errors"
	"strings"
	"testing"
)

// A listing as nvdisasm prints it, of a kernel that is given an output, an input and a number, as those of ptx_test.go. It has
// the thread's number in R1, its four bytes of the output in R2 and of the input in R4, and its place in shared memory in R6.
const (
	listingHead = "\t.target\tsm_90\n\t.section\t.nv.info.k,\"\"\n" +
		"//----- nvinfo : EIATTR_KPARAM_INFO\n /*00*/ .short 0x0000\n /*02*/ .short 0x0000\n /*04*/ .byte 0x00, 0xf0, 0x21, 0x00\n" +
		"//----- nvinfo : EIATTR_KPARAM_INFO\n /*00*/ .short 0x0001\n /*02*/ .short 0x0008\n /*04*/ .byte 0x00, 0xf0, 0x21, 0x00\n" +
		"//----- nvinfo : EIATTR_KPARAM_INFO\n /*00*/ .short 0x0002\n /*02*/ .short 0x0010\n /*04*/ .byte 0x00, 0xf0, 0x11, 0x00\n" +
		"//----- nvinfo : EIATTR_PARAM_CBANK\n /*00*/ .word index@(.nv.constant0.k)\n /*04*/ .short 0x0210\n" +
		"\t.section\t.text.k,\"ax\"\n"
	listingSetup = `S2R R1, SR_TID.X; ULDC.64 UR4, c[0x0][0x210]; IMAD.WIDE.U32 R2, R1, 0x4, UR4;
		LDC.64 R4, c[0x0][0x218]; IMAD.WIDE.U32 R4, R1, 0x4, R4; UMOV UR6, 0x400; IMAD R6, R1, 0x4, UR6;`
)

// runListing runs instructions, parted by semicolons, in 64 threads.
func runListing(code string) ([]uint32, error) {
	text := listingHead
	for line := range strings.SplitSeq(listingSetup+code, ";") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, ".L") {
			text += line + "\n"
		} else if line != "" {
			text += "        /*0000*/                   " + line + " ;\n"
		}
	}
	m, err := parseMachine(text)
	if err != nil {
		return nil, err
	}
	return m.run64(7)
}

// TestMachineValues computes one value per thread in R8 and compares it with Go's.
func TestMachineValues(t *testing.T) {
	for _, c := range []struct {
		code string
		want func(i uint32) uint32
	}{
		{"LDG.E R8, desc[UR4][R4.64];", func(i uint32) uint32 { return i }},
		{"LDC R8, c[0x0][0x220];", func(uint32) uint32 { return 7 }},
		{"IMAD.MOV.U32 R9, RZ, RZ, 0x208; LDC R8, c[0x0][R9+0x18];", func(uint32) uint32 { return 7 }},
		{"IADD3 R8, P0, R1, -0x1, RZ; IADD3.X R8, RZ, RZ, RZ, P0, !PT;", func(i uint32) uint32 { return min(i, 1) }},
		{"IADD3 R8, P0, R1, -R1, RZ; SEL R8, RZ, 0x5, !P0;", func(uint32) uint32 { return 5 }}, // -0 carries too
		{"LOP3.LUT R8, R1, 0x33, ~R1, 0x1e, !PT;", func(i uint32) uint32 { return i ^ (0x33 | ^i) }},
		{"LOP3.LUT P0, RZ, R1, 0x4, RZ, 0xc0, !PT; SEL R8, R1, RZ, P0;", func(i uint32) uint32 { return i * (i >> 2 & 1) }},
		{"PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x8; SEL R8, R1, RZ, P0;", func(i uint32) uint32 { return i }},
		{"SHF.L.W.U32.HI R8, R1, R1, 0x1;", func(i uint32) uint32 { return uint32((uint64(1)<<32 | uint64(i)) << (i % 32) >> 32) }},
		{"VIADD R8, R1, -0x28; SHF.R.S32.HI R8, RZ, 0x2, R8;", func(i uint32) uint32 { return uint32(int32(i-40) >> 2) }},
		{"SHF.R.U64 R8, R1, 0x8, R1;", func(i uint32) uint32 { return i << 24 }},
		{"IMAD.WIDE R8, R1, -0x1, RZ; MOV R8, R9;", func(i uint32) uint32 { return uint32(-int64(i) >> 32) }},
		{"IMAD.HI.U32 R8, R1, -0x80000000, RZ;", func(i uint32) uint32 { return i / 2 }},
		{"LEA.HI R8, R1, R1, RZ, 0x1f;", func(i uint32) uint32 { return i + i>>1 }},
		{"VIADDMNMX.U32 R8, R1, -0x1, 0x9, PT;", func(i uint32) uint32 { return min(i-1, 9) }},
		{"VIMNMX.U16x2 R8, R1, 0x30010, !PT;", func(i uint32) uint32 { return max(i, 16) | 3<<16 }},
		{"FLO.U32 R8, R1;", func(i uint32) uint32 {
			n := ^uint32(0)
			for ; i > 0; i >>= 1 {
				n++
			}
			return n
		}},
		{"HFMA2 R8, -RZ, RZ, 1.5, 5.9604644775390625e-08;", func(uint32) uint32 { return 0x3e000001 }},
		{"ISETP.LT.AND P0, P1, R1, 0x7, PT; P2R R8, PR, RZ, 0x3;", func(i uint32) uint32 {
			if i < 7 {
				return 1
			}
			return 2
		}},
		{"SHFL.DOWN PT, R8, R1, 0x1, 0x1f;", func(i uint32) uint32 { return min(i+1, i|31) }},
		{"STS [R6], R1; BAR.SYNC.DEFER_BLOCKING 0x0; LOP3.LUT R6, R6, 0xfc, RZ, 0x3c, !PT; LDS R8, [R6];", func(i uint32) uint32 { return 63 - i }},
		// Lanes that part meet again, or SHFL would miss some; those that break out do not keep the others waiting.
		{`BSSY.RECONVERGENT B0, (.L_x_2); ISETP.GT.U32.AND P0, PT, R1, 0x9, PT; MOV R8, R1; @P0 BREAK B0; @P0 BRA (.L_x_3);
		  ISETP.GT.U32.AND P1, PT, R1, 0x5, PT; @P1 BRA (.L_x_1); VIADD R8, R1, 0x64; .L_x_1:; BSYNC.RECONVERGENT B0; .L_x_2:; VIADD R8, R8, 0x1;
		  .L_x_3:; WARPSYNC.ALL; SHFL.IDX PT, R9, R8, 0x2, 0x1f; IADD3 R8, R8, R9, RZ;`, func(i uint32) uint32 {
			v := i
			switch {
			case i <= 5:
				v = i + 101
			case i <= 9:
				v = i + 1
			}
			if i < 32 {
				return v + 103
			}
			return v + 34
		}},
	} {
		got, err := runListing(c.code + "STG.E desc[UR4][R2.64], R8; EXIT")
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		wantThreads(t, c.code, got, c.want)
	}
}

// TestMachineFaults demands that unknown code and forbidden behavior are reported, with the right words.
func TestMachineFaults(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"FROB R8, R1; EXIT", "FROB R8, R1 ;: the opcode is not known"},
		{"SHF.L.S64 R8, R1, 0x1, RZ; EXIT", "the modifier S64 is not known"},
		{"MOV R8, SR_CLOCKLO; EXIT", `the operand "SR_CLOCKLO" is not known`},
		{"LDG.E R8, desc[UR4][R4.64*2]; EXIT", "the address desc[UR4][R4.64*2] is not known"},
		{"LDC R8, c[0x0][0x208+0x0]; EXIT", `the operand "0x208" is not known`},
		{"BRA (.L_x_9); EXIT", `label ".L_x_9"`},
		{"LDG.E R8, desc[UR4][R4.64+0x4]; EXIT", "4 bytes at 256 of in"},
		{"STG.E desc[UR4][R4.64], R1; EXIT", "write to in"},
		{"STG.E.64 desc[UR4][R2.64], R8; EXIT", "not aligned"},
		{"STS [R6+0x4], R1; EXIT", "4 bytes at 256 of shared memory"},
		{"STS [R6+-0x400], R1; EXIT", "4 bytes at -1024 of shared memory"},
		{"LDS R8, [R6]; EXIT", "was never written"},
		{"STS [R6], R1; LOP3.LUT R6, R6, 0x4, RZ, 0x3c, !PT; LDS R8, [R6]; EXIT", "was written by thread"},
		{"ISETP.EQ.AND P0, PT, R1, 0x3, PT; @P0 BAR.SYNC 0x0; EXIT", "barrier reached by lanes"},
		{"ISETP.EQ.AND P0, PT, R1, 0x3, PT; @P0 SHFL.IDX PT, R8, R1, RZ, 0x1f; EXIT", "shuffle for lanes"},
		{"ISETP.EQ.AND P0, PT, R1, 0x3, PT; @P0 EXIT; BAR.SYNC 0x0; EXIT", "barrier missed"},
		{"BSSY B0, (.L_x_1); ISETP.EQ.AND P0, PT, R1, 0x3, PT; .L_x_1:; @P0 BSYNC B0; @!P0 BAR.SYNC 0x0; EXIT", "barrier reached by lanes"},
		{"BSSY B0, (.L_x_1); BSSY B1, (.L_x_1); ISETP.EQ.AND P0, PT, R1, 0x3, PT; .L_x_1:; @P0 BSYNC B0; @!P0 BSYNC B1; EXIT", "lanes wait for lanes"},
		{"R2UR UR8, R1; EXIT", "lanes have different values"},
		{".L_x_1:; BRA (.L_x_1)", "step limit"},
		{"MOV R8, RZ", "no EXIT"},
	} {
		if _, err := runListing(c.code); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.code, err, c.want)
		}
	}
	if _, err := parseMachine("nothing"); err == nil {
		t.Error("a listing without a target is read")
	}
	var f *fault
	if _, err := runListing("LDS R8, [R6]; EXIT"); !errors.As(err, &f) {
		t.Errorf("not a fault: %v", err)
	}
}
