//go:build !noasm

#include "textflag.h"

// SPLIT is the loop of splitNEON for one width of pair indices: 32 weights in a turn. V30 has the bits of an exponent that an
// index takes in every 16, V31 the sign bit in every byte. A shift by 16 bits and the width, and an addition, put two
// neighbors together, as the multiplication in splitGo does.
#define SPLIT(loop, shift) \
loop: \
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16] \
	VUSHR  $7, V0.H8, V4.H8          \
	VUSHR  $7, V1.H8, V5.H8          \
	VUSHR  $7, V2.H8, V6.H8          \
	VUSHR  $7, V3.H8, V7.H8          \
	VAND   V30.B16, V4.B16, V4.B16   \
	VAND   V30.B16, V5.B16, V5.B16   \
	VAND   V30.B16, V6.B16, V6.B16   \
	VAND   V30.B16, V7.B16, V7.B16   \
	VSHL   $shift, V4.D2, V8.D2      \
	VSHL   $shift, V5.D2, V9.D2      \
	VSHL   $shift, V6.D2, V10.D2     \
	VSHL   $shift, V7.D2, V11.D2     \
	VADD   V8.D2, V4.D2, V4.D2       \
	VADD   V9.D2, V5.D2, V5.D2       \
	VADD   V10.D2, V6.D2, V6.D2      \
	VADD   V11.D2, V7.D2, V7.D2      \
	VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(R2) \
	VUZP1  V1.B16, V0.B16, V16.B16   \
	VUZP2  V1.B16, V0.B16, V17.B16   \
	VUZP1  V3.B16, V2.B16, V18.B16   \
	VUZP2  V3.B16, V2.B16, V19.B16   \
	VBIT   V31.B16, V17.B16, V16.B16 \
	VBIT   V31.B16, V19.B16, V18.B16 \
	VST1.P [V16.B16], 16(R0)         \
	VST1.P [V18.B16], 16(R0)         \
	SUBS   $32, R4, R4               \
	BNE    loop                      \
	RET

// func splitNEON(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)
TEXT ·splitNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R0
	MOVD  bf16+8(FP), R1
	MOVD  idx+16(FP), R2
	MOVD  width+24(FP), R3
	MOVD  $2048, R4 // stripElems
	VMOVI $0x80, V31.B16
	MOVD  $1, R5
	LSL   R3, R5, R5
	SUB   $1, R5, R5
	VDUP  R5, V30.H8
	CMP   $6, R3
	BEQ   six
	SPLIT(eight, 24)
	SPLIT(six, 22)
