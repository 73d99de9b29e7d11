//go:build !noasm

#include "textflag.h"

// Both functions make weights from exponents and sign_mantissa bytes:
//
//	low byte  = (exponent << 7) & 80 | sm & 7f
//	high byte = sm & 80 | (exponent >> 1) & 7f

// 32 weights per step. VPERMQ takes the quarters of a load in the order 0, 2, 1, 3, so that the unpack instructions, which
// work on each half alone, leave weights 0..15 in Y4 and 16..31 in Y5. Y15 holds 7f in every byte; AX, BX, DI point at
// exponents, sm and weights; CX counts weights.

#define MASK7F \
	VPCMPEQB Y15, Y15, Y15 \
	VPSRLW   $9, Y15, Y15  \
	VPACKUSWB Y15, Y15, Y15

#define JOIN32 \
	VPERMQ     $0xd8, (AX), Y0 \
	VPERMQ     $0xd8, (BX), Y1 \
	VPSLLW     $7, Y0, Y2      \
	VPANDN     Y2, Y15, Y2     \
	VPAND      Y1, Y15, Y3     \
	VPOR       Y2, Y3, Y2      \
	VPSRLW     $1, Y0, Y0      \
	VPAND      Y0, Y15, Y0     \
	VPANDN     Y1, Y15, Y1     \
	VPOR       Y0, Y1, Y0      \
	VPUNPCKLBW Y0, Y2, Y4      \
	VPUNPCKHBW Y0, Y2, Y5

// func sameBlocks(exponents, sm, bf16 *byte, n int) bool
TEXT ·sameBlocks(SB), NOSPLIT, $0-33
	MOVQ  exponents+0(FP), AX
	MOVQ  sm+8(FP), BX
	MOVQ  bf16+16(FP), DI
	MOVQ  n+24(FP), CX
	MASK7F
	VPXOR Y14, Y14, Y14 // differences so far

same:
	JOIN32
	VPXOR (DI), Y4, Y4
	VPXOR 32(DI), Y5, Y5
	VPOR  Y4, Y14, Y14
	VPOR  Y5, Y14, Y14
	ADDQ  $32, AX
	ADDQ  $32, BX
	ADDQ  $64, DI
	SUBQ  $32, CX
	JNE   same

	VPTEST Y14, Y14
	SETEQ  ret+32(FP)
	VZEROUPPER
	RET

// func joinBlocks(bf16, exponents, sm *byte, n int)
TEXT ·joinBlocks(SB), NOSPLIT, $0-32
	MOVQ bf16+0(FP), DI
	MOVQ exponents+8(FP), AX
	MOVQ sm+16(FP), BX
	MOVQ n+24(FP), CX
	MASK7F

join:
	JOIN32
	VMOVDQU Y4, (DI)
	VMOVDQU Y5, 32(DI)
	ADDQ    $32, AX
	ADDQ    $32, BX
	ADDQ    $64, DI
	SUBQ    $32, CX
	JNE     join

	VZEROUPPER
	RET
