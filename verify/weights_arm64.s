//go:build !noasm

#include "textflag.h"

// JOIN makes the low bytes of 16 weights in V2 and the high ones in V1, of exponents in V0 and sign_mantissa in V1: a shift
// inserts the exponent's bits beside the mantissa, another one below the sign.
#define JOIN \
	VMOV V1.B16, V2.B16     \
	VSLI $7, V0.B16, V2.B16 \
	VSRI $1, V0.B16, V1.B16

// func sameBlocks(exponents, sm, bf16 *byte, n int) bool
TEXT ·sameBlocks(SB), NOSPLIT, $0-33
	MOVD exponents+0(FP), R0
	MOVD sm+8(FP), R1
	MOVD bf16+16(FP), R2
	MOVD n+24(FP), R3
	VEOR V7.B16, V7.B16, V7.B16 // all differences

same:
	VLD1.P 16(R0), [V0.B16]
	VLD1.P 16(R1), [V1.B16]
	VLD2.P 32(R2), [V4.B16, V5.B16]
	JOIN
	VEOR   V2.B16, V4.B16, V4.B16
	VEOR   V1.B16, V5.B16, V5.B16
	VORR   V4.B16, V7.B16, V7.B16
	VORR   V5.B16, V7.B16, V7.B16
	SUBS   $16, R3, R3
	BNE    same

	VMOV V7.D[0], R4
	VMOV V7.D[1], R5
	ORR  R5, R4, R4
	CMP  $0, R4
	CSET EQ, R4
	MOVB R4, ret+32(FP)
	RET

// func joinBlocks(bf16, exponents, sm *byte, n int)
TEXT ·joinBlocks(SB), NOSPLIT, $0-32
	MOVD bf16+0(FP), R2
	MOVD exponents+8(FP), R0
	MOVD sm+16(FP), R1
	MOVD n+24(FP), R3

join:
	VLD1.P 16(R0), [V0.B16]
	VLD1.P 16(R1), [V1.B16]
	JOIN
	VMOV   V1.B16, V3.B16
	VST2.P [V2.B16, V3.B16], 32(R2)
	SUBS   $16, R3, R3
	BNE    join
	RET
