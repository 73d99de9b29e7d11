//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The AVX-512 variant of counting and splitting. A "vector" is 64 bytes. Operands are in Go's
// order: sources first, destination last. VPTERNLOGQ computes any function of three bits:
//
//	$0xb8, C, B, A   A = C where B has ones, else A
//	$0xf6, C, B, A   A |= B ^ C

// ---- Counting -------------------------------------------------------------
//
// Every exponent becomes a number of 4 bits. Bit j of 512 numbers makes one vector, bit plane j.
// How often each number occurs follows from how often planes have ones together.
//
//	SI, CX   weights, and batches of 512 left
//	R8       the planeCounts
//	Z31      tables of the numbers, by exponent mod 64; Z30 the same times 16
//	Z29      the exponent that each table entry stands for
//	Z28      0xff00 in every word
//	Z27, Z26 0xaa and 0xcc in every byte
//	Z25      nonzero bits if some exponent isn't in the table
//	Z10-Z24  ones in the products of planes, in 8 lanes each: product k, from 1 to 15, multiplies
//	         the planes whose bits k has; it's in Z(9+k)

// Load 64 exponents from the 64 weights at off(P): 32 from each vector, interleaved in words.
#define EXPONENTS(P, off, E, T) \
	VMOVDQU64  (off)(P), T         \
	VPSRLW     $7, (off+64)(P), E  \
	VPADDW     T, T, T             \
	VPTERNLOGQ $0xb8, T, Z28, E

// Look up the numbers of 64 exponents, and add to Z25 the bits of exponents that the table lacks.
#define NUMBERS(off, table, N, E, T) \
	EXPONENTS(SI, off, E, T)   \
	VPERMB     table, E, N     \
	VPERMB     Z29, E, T       \
	VPTERNLOGQ $0xf6, E, T, Z25

// NUMBERS2 turns 128 weights into N: each byte has the numbers of two of them.
#define NUMBERS2(off, N) \
	NUMBERS(off, Z31, N, Z4, Z5)      \
	NUMBERS(off+128, Z30, Z6, Z7, Z8) \
	VPORQ Z6, N, N

// EXCHANGE(n, mask) works on groups of 2n bits; mask has the upper n of each group. A keeps its
// lower bits and gets the lower bits of B above them. B keeps its upper bits and gets the upper
// bits of A below them. T is scratch.
#define EXCHANGE(n, mask, A, B, T) \
	VPSRLQ     $n, A, T        \
	VPTERNLOGQ $0xb8, B, mask, T \
	VPSLLQ     $n, B, B        \
	VPTERNLOGQ $0xb8, B, mask, A \
	VMOVDQA64  T, B

// ONES adds the ones in the lanes of plane P to the counters.
#define ONES(P, counters) \
	VPOPCNTQ P, Z9                \
	VPADDQ   Z9, counters, counters

// BOTH is ONES for the product of two planes, which it leaves in T.
#define BOTH(P, Q, T, counters) \
	VPANDQ P, Q, T    \
	ONES(T, counters)

// func countPlanes(w *planeCounts, bf16 *byte, nBatches int)
TEXT ·countPlanes(SB), NOSPLIT, $0-24
	MOVQ         w+0(FP), R8
	MOVQ         bf16+8(FP), SI
	MOVQ         nBatches+16(FP), CX
	VMOVDQU64    planeCounts_numbers(R8), Z31
	VPSLLW       $4, Z31, Z30 // numbers are below 16, so no bit reaches the next byte
	VMOVDQU64    planeCounts_chosen(R8), Z29
	MOVL         $0xff00, AX
	VPBROADCASTW AX, Z28
	MOVL         $0xaaaaaaaa, AX
	VPBROADCASTD AX, Z27
	MOVL         $0xcccccccc, AX
	VPBROADCASTD AX, Z26
	VPXORQ       Z10, Z10, Z10
	VMOVDQA64    Z10, Z11
	VMOVDQA64    Z10, Z12
	VMOVDQA64    Z10, Z13
	VMOVDQA64    Z10, Z14
	VMOVDQA64    Z10, Z15
	VMOVDQA64    Z10, Z16
	VMOVDQA64    Z10, Z17
	VMOVDQA64    Z10, Z18
	VMOVDQA64    Z10, Z19
	VMOVDQA64    Z10, Z20
	VMOVDQA64    Z10, Z21
	VMOVDQA64    Z10, Z22
	VMOVDQA64    Z10, Z23
	VMOVDQA64    Z10, Z24

batch:
	VPXORQ Z25, Z25, Z25
	NUMBERS2(0, Z0)
	NUMBERS2(256, Z1)
	NUMBERS2(512, Z2)
	NUMBERS2(768, Z3)

	// A byte of Z0 to Z3 has bits 3210 3210 of two numbers. Z0 will get bit 0 of all eight.
	EXCHANGE(1, Z27, Z0, Z1, Z4) // 2200 2200 of two vectors in Z0, 3311 3311 in Z1
	EXCHANGE(1, Z27, Z2, Z3, Z4) // the same of the other two
	EXCHANGE(2, Z26, Z0, Z2, Z4) // 0000 0000 in Z0, 2222 2222 in Z2
	EXCHANGE(2, Z26, Z1, Z3, Z4) // 1111 1111 in Z1, 3333 3333 in Z3

	ONES(Z0, Z10)
	ONES(Z1, Z11)
	BOTH(Z0, Z1, Z4, Z12)
	ONES(Z2, Z13)
	BOTH(Z0, Z2, Z5, Z14)
	BOTH(Z1, Z2, Z6, Z15)
	BOTH(Z4, Z2, Z7, Z16)
	ONES(Z3, Z17)
	BOTH(Z0, Z3, Z8, Z18)
	BOTH(Z1, Z3, Z8, Z19)
	BOTH(Z4, Z3, Z8, Z20)
	BOTH(Z2, Z3, Z8, Z21)
	BOTH(Z5, Z3, Z8, Z22)
	BOTH(Z6, Z3, Z8, Z23)
	BOTH(Z7, Z3, Z8, Z24)

	VPTESTMQ Z25, Z25, K1
	KORTESTW K1, K1
	JNZ      others

next:
	ADDQ $1024, SI
	DECQ CX
	JNZ  batch

	VMOVDQU64 Z10, (planeCounts_ones+64*1)(R8)
	VMOVDQU64 Z11, (planeCounts_ones+64*2)(R8)
	VMOVDQU64 Z12, (planeCounts_ones+64*3)(R8)
	VMOVDQU64 Z13, (planeCounts_ones+64*4)(R8)
	VMOVDQU64 Z14, (planeCounts_ones+64*5)(R8)
	VMOVDQU64 Z15, (planeCounts_ones+64*6)(R8)
	VMOVDQU64 Z16, (planeCounts_ones+64*7)(R8)
	VMOVDQU64 Z17, (planeCounts_ones+64*8)(R8)
	VMOVDQU64 Z18, (planeCounts_ones+64*9)(R8)
	VMOVDQU64 Z19, (planeCounts_ones+64*10)(R8)
	VMOVDQU64 Z20, (planeCounts_ones+64*11)(R8)
	VMOVDQU64 Z21, (planeCounts_ones+64*12)(R8)
	VMOVDQU64 Z22, (planeCounts_ones+64*13)(R8)
	VMOVDQU64 Z23, (planeCounts_ones+64*14)(R8)
	VMOVDQU64 Z24, (planeCounts_ones+64*15)(R8)
	VZEROUPPER
	RET

others: // count exponents the table lacks one by one, 64 weights at a time from DX on
	MOVQ SI, DX
	MOVL $8, R9

others64:
	EXPONENTS(DX, 0, Z0, Z1)
	VPERMB Z29, Z0, Z1
	VPCMPB $4, Z1, Z0, K1 // not equal
	KMOVQ  K1, AX
	TESTQ  AX, AX
	JZ     none

one: // byte i, the lowest bit of AX: word i/2 of the first vector if i is odd, else of the second
	BSFQ    AX, BX
	MOVL    BX, DI
	NOTL    BX
	ANDL    $1, BX
	SHLL    $6, BX
	ANDL    $62, DI
	ADDL    DI, BX
	MOVWLZX (DX)(BX*1), DI
	SHRL    $7, DI
	MOVBLZX DI, DI
	INCL    planeCounts_others(R8)(DI*4)
	LEAQ    -1(AX), BX
	ANDQ    BX, AX
	JNZ     one

none:
	ADDQ $128, DX
	DECL R9
	JNZ  others64
	JMP  next

// ---- Splitting ------------------------------------------------------------

// evenBytes are the low bytes of 32 words, twice.
DATA evenBytes<>+0(SB)/8, $0x0e0c0a0806040200
DATA evenBytes<>+8(SB)/8, $0x1e1c1a1816141210
DATA evenBytes<>+16(SB)/8, $0x2e2c2a2826242220
DATA evenBytes<>+24(SB)/8, $0x3e3c3a3836343230
DATA evenBytes<>+32(SB)/8, $0x0e0c0a0806040200
DATA evenBytes<>+40(SB)/8, $0x1e1c1a1816141210
DATA evenBytes<>+48(SB)/8, $0x2e2c2a2826242220
DATA evenBytes<>+56(SB)/8, $0x3e3c3a3836343230
GLOBL evenBytes<>(SB), RODATA|NOPTR, $64

// func splitAVX512(dst *[stripElems]byte, bf16 *[2 * stripElems]byte, idx *strip, width uint)
//
// 64 weights at a time, as 16-bit lanes in two vectors.
TEXT ·splitAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ bf16+8(FP), SI
	MOVQ idx+16(FP), DX
	MOVQ width+24(FP), CX

	MOVL $1, AX // Z15: the exponent bits that make an index, in every word
	SHLL CX, AX
	DECL AX
	VPBROADCASTW AX, Z15
	ADDL $16, CX // X14: how far the first exponent of a pair moves up
	VMOVD CX, X14
	MOVL $0x80, AX // Z13: where the sign goes
	VPBROADCASTW AX, Z13
	VMOVDQU64 evenBytes<>(SB), Z12
	MOVQ $0xffffffff00000000, AX // K1: the upper half
	KMOVQ AX, K1
	MOVL $(const_stripElems/64), CX

weights64:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1

	VPSRLW $7, Z0, Z2 // exponents; a pair of words is e0 below e1
	VPSRLW $7, Z1, Z3
	VPANDQ Z15, Z2, Z2
	VPANDQ Z15, Z3, Z3
	VPSLLD X14, Z2, Z4 // e0 << width into the upper word
	VPSLLD X14, Z3, Z5
	VPORQ  Z2, Z4, Z4  // with e1: the index; the lower word is e0
	VPORQ  Z3, Z5, Z5
	VMOVDQU64 Z4, (DX)
	VMOVDQU64 Z5, 64(DX)

	VPSRLW     $8, Z0, Z2
	VPSRLW     $8, Z1, Z3
	VPTERNLOGQ $0xb8, Z2, Z13, Z0 // the sign into the low byte, next to the mantissa
	VPTERNLOGQ $0xb8, Z3, Z13, Z1
	VPERMB     Z0, Z12, Z4        // the low bytes of Z0, twice
	VPERMB     Z1, Z12, K1, Z4    // with those of Z1 in the upper half
	VMOVDQU64  Z4, (DI)

	ADDQ $128, SI
	ADDQ $128, DX
	ADDQ $64, DI
	DECL CX
	JNZ  weights64
	VZEROUPPER
	RET

// ---- Gaps -----------------------------------------------------------------

// reversed reverses the bytes of every 8-byte lane.
DATA reversed<>+0(SB)/8, $0x0001020304050607
DATA reversed<>+8(SB)/8, $0x08090a0b0c0d0e0f
DATA reversed<>+16(SB)/8, $0x0001020304050607
DATA reversed<>+24(SB)/8, $0x08090a0b0c0d0e0f
DATA reversed<>+32(SB)/8, $0x0001020304050607
DATA reversed<>+40(SB)/8, $0x08090a0b0c0d0e0f
DATA reversed<>+48(SB)/8, $0x0001020304050607
DATA reversed<>+56(SB)/8, $0x08090a0b0c0d0e0f
GLOBL reversed<>(SB), RODATA|NOPTR, $64

// func packGapsOctets(dst, marks *byte, nOctets int)
//
// 8 windows at a time, in 8 lanes. The position of the first mark is the number of zeros above it.
// Without a mark that's 64, which the low 5 bits turn into 0.
TEXT ·packGapsOctets(SB), NOSPLIT, $0-24
	MOVQ         dst+0(FP), DI
	MOVQ         marks+8(FP), SI
	MOVQ         nOctets+16(FP), CX
	VMOVDQU64    reversed<>(SB), Z1
	MOVQ         $0x1f1f1f1f1f1f1f1f, DX

octet:
	VMOVDQU64 (SI), Z0
	VPSHUFB   Z1, Z0, Z0
	VPLZCNTQ  Z0, Z0
	VPMOVQB   Z0, X0     // the first window's gap is the lowest byte
	VMOVQ     X0, AX
	BSWAPQ    AX         // the highest
	PEXTQ     DX, AX, AX // 5 bits of each byte
	SHLQ      $24, AX
	BSWAPQ    AX
	MOVQ      AX, (DI)
	ADDQ      $64, SI
	ADDQ      $5, DI
	DECQ      CX
	JNZ       octet
	VZEROUPPER
	RET
