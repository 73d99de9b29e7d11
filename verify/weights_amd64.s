//go:build !noasm

#include "textflag.h"

// All functions make weights from exponents and sign_mantissa bytes:
//
//	low byte  = (exponent << 7) & 80 | sm & 7f
//	high byte = sm & 80 | (exponent >> 1) & 7f

// ---- AVX2 -----------------------------------------------------------------
//
// 32 weights per step. VPERMQ takes the quarters of a load in the order 0, 2, 1, 3, so that the unpack instructions,
// which work on each half alone, leave weights 0..15 in Y4 and 16..31 in Y5. Y15 holds 7f in
// every byte; AX, BX, DI point at exponents, sm and weights; CX counts weights.

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

// func sameAVX2(exponents, sm, bf16 *byte, n int) bool
// n is a positive multiple of 32.
TEXT ·sameAVX2(SB), NOSPLIT, $0-33
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

// func joinAVX2(bf16, exponents, sm *byte, n int)
// n is a positive multiple of 32.
TEXT ·joinAVX2(SB), NOSPLIT, $0-32
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

// ---- AVX-512 --------------------------------------------------------------
//
// 64 weights per step, the same way. Z13 tells VPERMQ to take the eighths of a load in the order
// 0, 4, 1, 5, 2, 6, 3, 7, so that the unpack instructions leave weights 0..31 in Z4 and 32..63 in
// Z5. VPTERNLOGQ $0xb8 takes its first operand where the second, Z15 with 7f in every byte, has
// ones, and keeps its last elsewhere: Z2 becomes the low bytes, Z1 the high ones.

DATA eighths<>+0(SB)/8, $0
DATA eighths<>+8(SB)/8, $4
DATA eighths<>+16(SB)/8, $1
DATA eighths<>+24(SB)/8, $5
DATA eighths<>+32(SB)/8, $2
DATA eighths<>+40(SB)/8, $6
DATA eighths<>+48(SB)/8, $3
DATA eighths<>+56(SB)/8, $7
GLOBL eighths<>(SB), RODATA|NOPTR, $64

#define CONSTANTS64 \
	VMOVDQU64    eighths<>(SB), Z13 \
	MOVL         $0x7f7f7f7f, DX    \
	VPBROADCASTD DX, Z15

#define JOIN64 \
	VPERMQ     (AX), Z13, Z0        \
	VPERMQ     (BX), Z13, Z1        \
	VPSLLW     $7, Z0, Z2           \
	VPSRLW     $1, Z0, Z3           \
	VPTERNLOGQ $0xb8, Z1, Z15, Z2   \
	VPTERNLOGQ $0xb8, Z3, Z15, Z1   \
	VPUNPCKLBW Z1, Z2, Z4           \
	VPUNPCKHBW Z1, Z2, Z5

// func sameAVX512(exponents, sm, bf16 *byte, n int) bool
// n is a positive multiple of 64.
TEXT ·sameAVX512(SB), NOSPLIT, $0-33
	MOVQ   exponents+0(FP), AX
	MOVQ   sm+8(FP), BX
	MOVQ   bf16+16(FP), DI
	MOVQ   n+24(FP), CX
	CONSTANTS64
	VPXORQ Z14, Z14, Z14 // differences so far

same:
	JOIN64
	VPTERNLOGQ $0xf6, (DI), Z4, Z14   // Z14 |= Z4 ^ (DI)
	VPTERNLOGQ $0xf6, 64(DI), Z5, Z14
	ADDQ       $64, AX
	ADDQ       $64, BX
	ADDQ       $128, DI
	SUBQ       $64, CX
	JNE        same

	VPTESTMQ Z14, Z14, K1
	KORTESTW K1, K1
	SETEQ    ret+32(FP)
	VZEROUPPER
	RET

// func joinAVX512(bf16, exponents, sm *byte, n int)
// n is a positive multiple of 64.
TEXT ·joinAVX512(SB), NOSPLIT, $0-32
	MOVQ bf16+0(FP), DI
	MOVQ exponents+8(FP), AX
	MOVQ sm+16(FP), BX
	MOVQ n+24(FP), CX
	CONSTANTS64

join:
	JOIN64
	VMOVDQU64 Z4, (DI)
	VMOVDQU64 Z5, 64(DI)
	ADDQ      $64, AX
	ADDQ      $64, BX
	ADDQ      $128, DI
	SUBQ      $64, CX
	JNE       join

	VZEROUPPER
	RET
