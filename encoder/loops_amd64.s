//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The AVX2 and BMI2 variant of the inner loops. Each function does what its
// twin in loops_go.go does; the comments here say how the data lie in the
// registers. A "vector" is 32 bytes. Operands are in Go's order: sources
// first, destination last.

// ---- Appending pairs ------------------------------------------------------
//
// One loop for the three paces. A group has an upper and a lower half of 4 or 2
// pairs or 2 elements; the HALVES macros make the two halves, the rest is the
// same.
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

// NEXT appends another entry: codes and marks move up together, since both
// stay within 32 bits.
#define NEXT(MOV, off, half, nBits) \
	MOV     off(SI), DI         \
	MOVBLZX (R9)(DI*1), BP      \
	SHLXQ   BP, half, half      \
	ORQ     (R8)(DI*8), half    \
	ADDL    BP, nBits

// The upper half of 16 joins two by two, which shortens the chain of shifts;
// for the lower half there are no registers left.
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

// Elements one by one: the exponents of a pair are the bytes of its index.
#define HALVES4 \
	FIRST(MOVBLZX, 3, AX, DX) \
	NEXT(MOVBLZX, 2, AX, DX)  \
	FIRST(MOVBLZX, 7, BX, CX) \
	NEXT(MOVBLZX, 6, BX, CX)

// STORE adds the two halves to the streams and stores 8 bytes of each: first
// makes room for a half and ORs it in, the codes from its lower 32 bits, the
// marks from its upper ones; then brings what is waiting to the top of a word,
// a shift by 64-n, stores it in stream order and keeps the bits that do not
// fill a byte.
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

// APPEND is the body of the three functions; size is the bytes of a group in
// idx. It leaves the bytes of the groups that were added in SI. A half of more
// than 32 bits or a group of more than 56, its length is in BP, ends the loop.
#define APPEND(HALVES, size, words, nBits) \
	MOVQ w+0(FP), DI             \
	MOVQ t+8(FP), R8             \
	LEAQ nBits(R8), R9           \
	LEAQ words(R8), R8           \
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
	MOVQ ahead+56(FP), AX        \
	SUBQ SI, AX                  \
	MOVQ AX, ahead-16(SP)        \
	CMPQ SI, end-8(SP)           \
	JAE  done                    \
	PCALIGN $32                  \
loop:                            \
	MOVQ ahead-16(SP), DI        \
	PREFETCHT0 (SI)(DI*1)        \
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

// func append16AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch, ahead *byte) int
TEXT ·append16AVX2(SB), NOSPLIT, $16-72
	APPEND(HALVES16, 32, pairTable_words, pairTable_nBits)
	SHRQ $5, SI
	MOVQ SI, ret+64(FP)
	RET

// func append8AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch, ahead *byte) int
TEXT ·append8AVX2(SB), NOSPLIT, $16-72
	APPEND(HALVES8, 16, pairTable_words, pairTable_nBits)
	SHRQ $4, SI
	MOVQ SI, ret+64(FP)
	RET

// func append4AVX2(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch, ahead *byte) int
TEXT ·append4AVX2(SB), NOSPLIT, $16-72
	APPEND(HALVES4, 8, pairTable_oneWord, pairTable_oneBits)
	SHRQ $3, SI
	MOVQ SI, ret+64(FP)
	RET

// ---- Splitting ------------------------------------------------------------

// func splitAVX2(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)
//
// 32 weights at a time, as 16-bit lanes in two vectors. The next strip's part of
// dst is fetched ahead of its stores.
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
	ADDL $16, CX // X14: how far the first exponent of a pair moves up
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
	VPOR    Y2, Y4, Y4  // with e1: the index; the lower lane is void
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
	VPERMQ    $0xd8, Y0, Y0  // so bring the quarters into order
	VMOVDQU   Y0, (DI)
	PREFETCHT0 2048(DI)

	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $32, DI
	DECL CX
	JNZ  weights32
	VZEROUPPER
	RET

// ---- Counting -------------------------------------------------------------

// COUNT1 adds to 32 byte counters how often the exponents in Y8 and Y9 equal
// symbol number k; equal bytes compare as -1.
#define COUNT1(k, counters) \
	VMOVDQU  (bandCounts_symbols+32*(k))(R8), Y10 \
	VPCMPEQB Y8, Y10, Y12                           \
	VPCMPEQB Y9, Y10, Y10                           \
	VPADDB   Y12, Y10, Y10                          \
	VPSUBB   Y10, counters, counters

// SUM adds the byte counters in A to the four counters of symbol k and clears
// them. Y11 is zero.
#define SUM(k, A) \
	VPSADBW Y11, A, A                                       \
	VPADDQ  (bandCounts_counts+32*(k))(R8), A, A          \
	VMOVDQU A, (bandCounts_counts+32*(k))(R8)             \
	VPXOR   A, A, A

// HALF counts the 8 symbols from number k on in all exponents of the piece.
#define HALF(k, again) \
	LEAQ  bandCounts_piece(R8), DI  \
	MOVL  $(const_pieceElems/64), CX  \
again:                                \
	VMOVDQU (DI), Y8                  \
	VMOVDQU 32(DI), Y9                \
	COUNT1(k, Y0)                     \
	COUNT1(k+1, Y1)                   \
	COUNT1(k+2, Y2)                   \
	COUNT1(k+3, Y3)                   \
	COUNT1(k+4, Y4)                   \
	COUNT1(k+5, Y5)                   \
	COUNT1(k+6, Y6)                   \
	COUNT1(k+7, Y7)                   \
	PREFETCHT0 (SI)(DX*1)             \
	ADDQ  $64, DX                     \
	ADDQ  $64, DI                     \
	DECL  CX                          \
	JNZ   again                       \
	SUM(k, Y0)                        \
	SUM(k+1, Y1)                      \
	SUM(k+2, Y2)                      \
	SUM(k+3, Y3)                      \
	SUM(k+4, Y4)                      \
	SUM(k+5, Y5)                      \
	SUM(k+6, Y6)                      \
	SUM(k+7, Y7)

// func countBandAVX2(w *bandCounts, bf16 *byte, nPieces int)
//
// A piece is 128 vectors of exponents, so that no byte counter overflows. They
// are made once and then read for 8 symbols at a time, while the next piece is
// fetched: DX runs through its bytes.
TEXT ·countBandAVX2(SB), NOSPLIT, $0-24
	MOVQ    w+0(FP), R8
	MOVQ    bf16+8(FP), SI
	MOVQ    nPieces+16(FP), R9
	MOVL    $15, AX
	MOVQ    AX, X13
	VPBROADCASTB X13, Y13
	VPXOR   Y11, Y11, Y11
	VPXOR   Y0, Y0, Y0
	VPXOR   Y1, Y1, Y1
	VPXOR   Y2, Y2, Y2
	VPXOR   Y3, Y3, Y3
	VPXOR   Y4, Y4, Y4
	VPXOR   Y5, Y5, Y5
	VPXOR   Y6, Y6, Y6
	VPXOR   Y7, Y7, Y7

piece:
	LEAQ    bandCounts_piece(R8), DI
	MOVL    $(const_pieceElems/32), CX
	VMOVDQU bandCounts_symbols(R8), Y12               // the lowest of the band
	VMOVDQU (bandCounts_symbols+32*16)(R8), Y14       // the extra symbol
	VPXOR   Y15, Y15, Y15                               // its counters

exponents32:
	VMOVDQU   (SI), Y8
	VMOVDQU   32(SI), Y9
	VPADDW    Y8, Y8, Y8 // the sign falls out, the exponent is the upper byte
	VPADDW    Y9, Y9, Y9
	VPSRLW    $8, Y8, Y8
	VPSRLW    $8, Y9, Y9
	VPACKUSWB Y9, Y8, Y8 // 32 exponents, in some order
	VMOVDQU   Y8, (DI)
	VPCMPEQB  Y14, Y8, Y9
	VPSUBB    Y9, Y15, Y15
	VPSUBB    Y12, Y8, Y8 // in the band: at most 15 above the lowest
	VPMINUB   Y13, Y8, Y10
	VPCMPEQB  Y10, Y8, Y10
	VPOR      Y9, Y10, Y10
	VPMOVMSKB Y10, AX
	NOTL      AX
	TESTL     AX, AX
	JNZ       others

next:
	ADDQ $64, SI
	ADDQ $32, DI
	DECL CX
	JNZ  exponents32
	SUM(16, Y15)
	XORL DX, DX
	HALF(0, lower)
	HALF(8, upper)
	DECQ R9
	JNZ  piece
	VZEROUPPER
	RET

others: // one by one, by the bits of AX
	BSFL    AX, BX
	MOVBLZX (DI)(BX*1), DX
	INCL    bandCounts_others(R8)(DX*4)
	LEAL    -1(AX), BX
	ANDL    BX, AX
	JNZ     others
	JMP     next
