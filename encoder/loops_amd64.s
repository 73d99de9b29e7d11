//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The AVX2 and BMI2 variant of the inner loops. Each function does what its twin in loops_go.go
// does. The comments here say how the data is laid out in the registers. A "vector" is 32 bytes.
// Operands are in Go's order: sources first, destination last.

// ---- Appending pairs ------------------------------------------------------
//
// One loop serves both paces. A group has an upper and a lower half of 4 or 2 pairs. The HALVES
// macros make the two halves; the rest is the same.
//
//	SI        pair indices, 4 bytes per pair, the index in the upper two
//	R8, R9    the table: words and lengths of its entries
//	R10, R11  coded and marks, R12 bytes written to both
//	R13, R14  the last code bits and their marks, R15 how many are waiting
//	AX, BX    the upper and the lower half, as in the table: marks<<32 | codes
//	DX, CX    their lengths in bits
//	DI, BP    scratch

// FIRST starts a half with the table entry whose index MOV reads at off.
#define FIRST(MOV, off, half, nBits) \
	MOV     off(SI), DI         \
	MOVBLZX (R9)(DI*1), nBits   \
	MOVQ    (R8)(DI*8), half

// NEXT appends another entry. Codes and marks move up together, because both stay within 32 bits.
#define NEXT(MOV, off, half, nBits) \
	MOV     off(SI), DI         \
	MOVBLZX (R9)(DI*1), BP      \
	SHLXQ   BP, half, half      \
	ORQ     (R8)(DI*8), half    \
	ADDL    BP, nBits

// The upper half of 16 joins entries two by two, which shortens the chain of shifts. There aren't
// enough registers to do this for the lower half, too.
#define HALVES16 \
	FIRST(MOVWLZX, 2, AX, DX)  \
	NEXT(MOVWLZX, 6, AX, DX)  \
	FIRST(MOVWLZX, 10, BX, CX) \
	NEXT(MOVWLZX, 14, BX, CX) \
	SHLXQ CX, AX, AX \
	ORQ   BX, AX     \
	ADDL  CX, DX     \
	FIRST(MOVWLZX, 18, BX, CX) \
	NEXT(MOVWLZX, 22, BX, CX) \
	NEXT(MOVWLZX, 26, BX, CX) \
	NEXT(MOVWLZX, 30, BX, CX)

#define HALVES8 \
	FIRST(MOVWLZX, 2, AX, DX)  \
	NEXT(MOVWLZX, 6, AX, DX)  \
	FIRST(MOVWLZX, 10, BX, CX) \
	NEXT(MOVWLZX, 14, BX, CX)

// STORE adds the two halves to the streams and stores 8 bytes of each. For each half it makes space
// and ORs the half in: the codes from its lower 32 bits, the marks from its upper 32. Then it
// shifts the waiting bits by 64-n to the top of a word, stores the word in stream order, and keeps
// the bits that don't fill a byte.
#define STORE \
	MOVL   AX, DI          \
	SHLXQ  DX, R13, R13    \
	ORQ    DI, R13         \
	MOVL   BX, DI          \
	SHLXQ  CX, R13, R13    \
	ORQ    DI, R13         \
	SHRQ   $32, AX         \
	SHLXQ  DX, R14, R14    \
	ORQ    AX, R14         \
	SHRQ   $32, BX         \
	SHLXQ  CX, R14, R14    \
	ORQ    BX, R14         \
	ADDQ   BP, R15         \
	MOVQ   R15, DI         \
	NEGQ   DI              \
	SHLXQ  DI, R13, AX     \
	SHLXQ  DI, R14, BX     \
	BSWAPQ AX              \
	BSWAPQ BX              \
	MOVQ   AX, (R10)(R12*1) \
	MOVQ   BX, (R11)(R12*1) \
	MOVL   R15, DI         \
	SHRL   $3, DI          \
	ADDQ   DI, R12         \
	ANDL   $7, R15

// APPEND is the body of both functions; size is the bytes of a group in idx. It leaves the bytes of
// the groups that were added in SI. The loop ends at a half of more than 32 bits or a group of more
// than 56. The group's length is in BP.
#define APPEND(HALVES, size) \
	MOVQ w+0(FP), DI             \
	MOVQ t+8(FP), R8             \
	LEAQ pairTable_nBits(R8), R9 \
	LEAQ pairTable_words(R8), R8 \
	MOVQ idx_base+16(FP), SI     \
	MOVQ idx_len+24(FP), AX      \
	ANDQ $~(size-1), AX          \
	ADDQ SI, AX                  \
	MOVQ AX, end-8(SP)           \
	MOVQ coded+40(FP), R10       \
	MOVQ marks+48(FP), R11       \
	XORL R12, R12                \
	MOVQ bitWriter_code(DI), R13 \
	MOVQ bitWriter_mark(DI), R14 \
	MOVQ bitWriter_n(DI), R15    \
	CMPQ SI, end-8(SP)           \
	JAE  done                    \
	PCALIGN $32                  \
loop:                            \
	HALVES                       \
	LEAQ (DX)(CX*1), BP          \
	CMPL DX, $32                 \
	JA   done                    \
	CMPL CX, $32                 \
	JA   done                    \
	CMPL BP, $56                 \
	JA   done                    \
	STORE                        \
	ADDQ $size, SI               \
	CMPQ SI, end-8(SP)           \
	JB   loop                    \
done:                            \
	MOVQ w+0(FP), DI             \
	MOVQ R13, bitWriter_code(DI) \
	MOVQ R14, bitWriter_mark(DI) \
	MOVQ R15, bitWriter_n(DI)    \
	ADDQ R12, bitWriter_at(DI)   \
	SUBQ idx_base+16(FP), SI

// func append16AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int
TEXT ·append16AVX2(SB), NOSPLIT, $8-64
	APPEND(HALVES16, 32)
	SHRQ $5, SI
	MOVQ SI, ret+56(FP)
	RET

// func append8AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int
TEXT ·append8AVX2(SB), NOSPLIT, $8-64
	APPEND(HALVES8, 16)
	SHRQ $4, SI
	MOVQ SI, ret+56(FP)
	RET

// ---- Splitting ------------------------------------------------------------

// func splitAVX2(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)
//
// 32 weights at a time, as 16-bit lanes in two vectors.
TEXT ·splitAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ bf16+8(FP), SI
	MOVQ idx+16(FP), DX
	MOVQ width+24(FP), CX

	MOVL $1, AX // Y15: the exponent bits that make an index, in every lane
	SHLL CX, AX
	DECL AX
	MOVQ AX, X15
	VPBROADCASTW X15, Y15
	ADDL $16, CX // X14: how far to shift up the first exponent of a pair
	MOVQ CX, X14
	MOVL $0x7f, AX // Y13: mantissa
	MOVQ AX, X13
	VPBROADCASTW X13, Y13
	MOVL $0x80, AX // Y12: sign, after a shift by 8
	MOVQ AX, X12
	VPBROADCASTW X12, Y12
	MOVL $(const_stripElems/32), CX

weights32:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1

	VPSRLW  $7, Y0, Y2 // exponents; a pair of lanes is e0 below e1
	VPSRLW  $7, Y1, Y3
	VPAND   Y15, Y2, Y2
	VPAND   Y15, Y3, Y3
	VPSLLD  X14, Y2, Y4 // e0 << width into the upper lane
	VPSLLD  X14, Y3, Y5
	VPOR    Y2, Y4, Y4  // with e1: the index; the lower lane is undefined
	VPOR    Y3, Y5, Y5
	VMOVDQU Y4, (DX)
	VMOVDQU Y5, 32(DX)

	VPAND     Y13, Y0, Y2
	VPAND     Y13, Y1, Y3
	VPSRLW    $8, Y0, Y0
	VPSRLW    $8, Y1, Y1
	VPAND     Y12, Y0, Y0
	VPAND     Y12, Y1, Y1
	VPOR      Y2, Y0, Y0
	VPOR      Y3, Y1, Y1
	VPACKUSWB Y1, Y0, Y0     // to bytes, within each half of the vectors
	VPERMQ    $0xd8, Y0, Y0  // so put the quarters in order
	VMOVDQU   Y0, (DI)

	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $32, DI
	DECL CX
	JNZ  weights32
	VZEROUPPER
	RET
