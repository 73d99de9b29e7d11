//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The AVX-512 variant of appending. A vector has 8 lanes of 8 bytes. Operands are in Go's order:
// sources first, destination last.
//
// A group is 128 or 64 elements. Its codes are joined, two by two, until each lane holds the codes
// of 16 or 8 neighbors. The first lane holds those of the first elements. Then all lanes go to the
// stream at once, as 64-bit words. These words are counted from the start of the whole buffers: the
// loop begins at the last word that isn't full, not at the byte where the stretches begin, and it
// ends the same way.
//
//	SI, R9    pair indices and their end; each word has an exponent in its low 6 bits
//	R10, R11  the word that isn't full, in coded and in marks
//	Z16       lane 0: the contents of that word, from the top bit down
//	Z15       how many bits that is, in every lane
//	Z31, Z30  codes by exponent, 32 words each; Z29 their lengths, in bytes
//	Z28, Z27  orders of lanes, to transpose what is loaded
//	Z26       0 ... Z25 1 in every word; in every lane: Z24 63, Z23 64, Z22 0xffffffff
//	Z21       the bytes of a lane in reverse order; Z20 the lowest word of a lane, four times
//	Z19       the top bit; Z18 7; Z17 511
//	K1, K2    lane 0; every other byte

// orders16 takes lanes 0 4 8 12 1 5 9 13 and 2 6 10 14 3 7 11 15 of two vectors. orders8 takes the
// even lanes and the odd lanes.
DATA orders16<>+0(SB)/8, $0x0
DATA orders16<>+8(SB)/8, $0x4
DATA orders16<>+16(SB)/8, $0x8
DATA orders16<>+24(SB)/8, $0xc
DATA orders16<>+32(SB)/8, $0x1
DATA orders16<>+40(SB)/8, $0x5
DATA orders16<>+48(SB)/8, $0x9
DATA orders16<>+56(SB)/8, $0xd
DATA orders16<>+64(SB)/8, $0x2
DATA orders16<>+72(SB)/8, $0x6
DATA orders16<>+80(SB)/8, $0xa
DATA orders16<>+88(SB)/8, $0xe
DATA orders16<>+96(SB)/8, $0x3
DATA orders16<>+104(SB)/8, $0x7
DATA orders16<>+112(SB)/8, $0xb
DATA orders16<>+120(SB)/8, $0xf
GLOBL orders16<>(SB), RODATA|NOPTR, $128
DATA orders8<>+0(SB)/8, $0x0
DATA orders8<>+8(SB)/8, $0x2
DATA orders8<>+16(SB)/8, $0x4
DATA orders8<>+24(SB)/8, $0x6
DATA orders8<>+32(SB)/8, $0x8
DATA orders8<>+40(SB)/8, $0xa
DATA orders8<>+48(SB)/8, $0xc
DATA orders8<>+56(SB)/8, $0xe
DATA orders8<>+64(SB)/8, $0x1
DATA orders8<>+72(SB)/8, $0x3
DATA orders8<>+80(SB)/8, $0x5
DATA orders8<>+88(SB)/8, $0x7
DATA orders8<>+96(SB)/8, $0x9
DATA orders8<>+104(SB)/8, $0xb
DATA orders8<>+112(SB)/8, $0xd
DATA orders8<>+120(SB)/8, $0xf
GLOBL orders8<>(SB), RODATA|NOPTR, $128
DATA swapLane<>+0(SB)/8, $0x1020304050607
DATA swapLane<>+8(SB)/8, $0x8090a0b0c0d0e0f
GLOBL swapLane<>(SB), RODATA|NOPTR, $16
DATA lowWord<>+0(SB)/8, $0x100010001000100
DATA lowWord<>+8(SB)/8, $0x908090809080908
GLOBL lowWord<>(SB), RODATA|NOPTR, $16

// ENTER loads the constants and the state. The word that isn't full has c whole bytes in the
// buffers, CX = 8c, and n bits waiting. A code begins at the end of the stream, so ENTER marks it.
#define ENTER(size, orders, lowCodes, lowBits) \
	MOVQ w+0(FP), DI               \
	MOVQ t+8(FP), R8               \
	MOVQ idx_base+16(FP), SI       \
	MOVQ idx_len+24(FP), R9        \
	MOVQ coded+40(FP), R10         \
	MOVQ marks+48(FP), R11         \
	ANDQ $~(size-1), R9            \
	ADDQ SI, R9                    \
	VMOVDQU64 lowCodes(R8), Z31    \
	VMOVDQU64 (lowCodes+64)(R8), Z30 \
	VMOVDQU64 lowBits(R8), Z29     \
	VMOVDQU64 orders<>(SB), Z28    \
	VMOVDQU64 orders<>+64(SB), Z27 \
	VPXORQ Z26, Z26, Z26           \
	MOVL $1, AX                    \
	KMOVQ AX, K1                   \
	VPBROADCASTW AX, Z25           \
	VPBROADCASTQ AX, Z19           \
	VPSLLQ $63, Z19, Z19           \
	MOVQ $0x5555555555555555, AX   \
	KMOVQ AX, K2                   \
	MOVL $63, AX                   \
	VPBROADCASTQ AX, Z24           \
	MOVL $64, AX                   \
	VPBROADCASTQ AX, Z23           \
	MOVL $0xffffffff, AX           \
	VPBROADCASTQ AX, Z22           \
	MOVL $7, AX                    \
	VPBROADCASTQ AX, Z18           \
	MOVL $511, AX                  \
	VPBROADCASTQ AX, Z17           \
	VBROADCASTI64X2 swapLane<>(SB), Z21 \
	VBROADCASTI64X2 lowWord<>(SB), Z20  \
	MOVQ bitWriter_at(DI), CX      \
	ANDL $7, CX                    \
	SUBQ CX, R10                   \
	SUBQ CX, R11                   \
	SHLL $3, CX                    \
	MOVQ bitWriter_n(DI), R13      \
	LEAQ (CX)(R13*1), R12          \ // bits in the word
	XORQ $63, R13                  \ // 63 - n; shift by one more
	MOVQ $-1, R8                   \
	SHRXQ CX, R8, R8               \
	NOTQ R8                        \ // the upper 8c bits
	MOVQ (R10), AX                 \ // the word of coded
	BSWAPQ AX                      \
	ANDQ R8, AX                    \
	MOVQ bitWriter_code(DI), BX    \
	SHLXQ R13, BX, BX              \
	ADDQ BX, BX                    \
	SHRXQ CX, BX, BX               \
	ORQ  BX, AX                    \
	VMOVQ AX, X16                  \
	VPBROADCASTQ R12, Z15          \
	MOVQ (R11), AX                 \ // the word of marks
	BSWAPQ AX                      \
	ANDQ R8, AX                    \
	MOVQ bitWriter_mark(DI), BX    \
	SHLXQ R13, BX, BX              \
	ADDQ BX, BX                    \
	SHRXQ CX, BX, BX               \
	ORQ  BX, AX                    \
	MOVQ $1, BX                    \
	RORQ $1, BX                    \
	SHRXQ R12, BX, BX              \
	ORQ  BX, AX                    \
	BSWAPQ AX                      \
	MOVQ AX, (R11)

// LEAVE stores the state. Only bits after the last whole byte of the word are still waiting. It
// removes the mark at the end of the stream, because a code may or may not begin there. It leaves
// the number of bytes of the added groups in SI.
#define LEAVE \
	MOVQ w+0(FP), DI             \
	VMOVQ X15, R12               \
	MOVQ R12, R13                \
	XORQ $63, R13                \
	VMOVQ X16, AX                \
	SHRXQ R13, AX, AX            \
	SHRQ $1, AX                  \
	MOVQ AX, bitWriter_code(DI)  \
	MOVQ $-1, R8                 \
	SHRXQ R12, R8, R8            \
	NOTQ R8                      \
	MOVQ (R11), AX               \
	BSWAPQ AX                    \
	ANDQ R8, AX                  \
	MOVQ AX, BX                  \
	BSWAPQ BX                    \
	MOVQ BX, (R11)               \
	SHRXQ R13, AX, AX            \
	SHRQ $1, AX                  \
	MOVQ AX, bitWriter_mark(DI)  \
	SUBQ coded+40(FP), R10       \
	MOVQ R12, AX                 \
	SHRQ $3, AX                  \
	ADDQ AX, R10                 \
	ADDQ R10, bitWriter_at(DI)   \
	ANDL $7, R12                 \
	MOVQ R12, bitWriter_n(DI)    \
	SUBQ idx_base+16(FP), SI     \
	VZEROUPPER

// FOURS looks up 32 elements and joins them four by four. V holds 4 indices in every lane; FOURS
// replaces them with their joined codes. L gets the four lengths, as words in the order of the
// elements, N their sum.
//
// A code has at most 14 bits, so a pair is a signed product of words: the first code times 2 to the
// length of the second, plus the second times 1. Shifts join pairs of pairs. VPSADBW adds the bytes
// of a lane.
#define FOURS(V, L, N, S, T) \
	VPERMB.Z Z29, V, K2, L  \
	VPERMI2W Z30, Z31, V    \
	VPSRLD   $16, L, S      \ // words: length of the second, 0
	VPSLLVW  S, Z25, S      \ // 2 to the power of these
	VPMADDWD V, S, V        \ // pairs
	VPSRLQ   $32, L, S      \
	VPSADBW  Z26, S, S      \ // length of the second pair
	VPANDQ   Z22, V, T      \
	VPSRLQ   $32, V, V      \
	VPSLLVQ  S, T, T        \
	VPORQ    T, V, V        \
	VPSADBW  Z26, L, N

// JOIN appends the lanes of code B, length NB, to those of A, length NA, and puts the sum of the
// lengths into N, which may be NA or NB.
#define JOIN(A, NA, B, NB, N) \
	VPSLLVQ NB, A, A  \
	VPORQ   B, A, A   \
	VPADDQ  NA, NB, N

// RUNNING replaces each lane with the sum of itself and all lanes before it. T is scratch.
#define RUNNING(V, T) \
	VALIGNQ $7, Z26, V, T \
	VPADDQ  T, V, V       \
	VALIGNQ $6, Z26, V, T \
	VPADDQ  T, V, V       \
	VALIGNQ $4, Z26, V, T \
	VPADDQ  T, V, V

// ENDS sets E to the bit at which each lane ends, counted from the word that isn't full. It jumps
// to no if a lane of length N has more than 64 bits, as every lane does that has a code the table
// lacks. It also jumps to no if the group reaches beyond 511 bits: the last word would be the 9th.
#define ENDS(N, E, T, no) \
	VMOVDQA64 N, E        \
	RUNNING(E, T)         \
	VPADDQ   Z15, E, E    \
	VPCMPUQ  $2, Z23, N, K3 \ // at most 64
	VPCMPUQ  $2, Z17, E, K3, K3 \
	KORTESTB K3, K3       \
	JCC      no

// APPEND adds the lanes of code C, length N, ends E, to the coded stream. It leaves in X the bits
// that were free in the word in which each lane begins, and in K3 the lanes that fill this word.
//
// A lane has a part H for the word in which it begins and a part C for the next word, 0 if it
// doesn't reach that word. No two parts share a bit, so the parts can be added up, starting with
// the first. For a lane that fills a word, take the sum without its C: then every word is the
// difference of two such sums. VPCOMPRESSQ collects them. After them comes the sum of everything,
// which gives the word that isn't full in the same way, and then zeros.
#define APPEND(C, N, E, X, H, S, T) \
	VPSUBQ  N, E, S          \
	VPANDQ  Z24, S, S        \ // the bit at which a lane begins in its word
	VPADDQ  N, S, T          \
	VPCMPUQ $5, Z23, T, K3   \ // it ends at bit 64 or later
	VPSUBQ  S, Z23, X        \
	VPSUBQ  N, Z23, T        \
	VPSLLVQ T, C, C          \ // to the top
	VPSRLVQ S, C, H          \
	VPSLLVQ X, C, C          \
	VPADDQ  H, C, H          \
	RUNNING(H, T)            \
	VPSUBQ  C, H, S          \
	VPERMQ  H, Z18, H        \ // the last sum
	VPCOMPRESSQ S, K3, H     \
	VALIGNQ $7, Z26, H, T    \
	VPSUBQ  T, H, H          \
	VPADDQ  Z16, H, H        \ // what was already in the word
	VPSHUFB Z21, H, T        \
	VMOVDQU64 T, (R10)       \
	VPERMQ  E, Z18, E        \ // the end
	VPSRLQ  $6, E, T         \
	VPANDQ  Z24, E, Z15      \
	VPERMQ.Z H, T, K1, Z16

// MARK marks the first code that begins in each word that begins in this group. L holds the lengths
// of 4 elements of a lane: that code begins in one of them, or the last code before it ends with
// them. X is how many of their bits belong to the word before. The position is the smallest sum of
// lengths that isn't less than X, minus X; smaller sums give large words.
#define MARK(L, X, T) \
	VPSLLQ  $16, L, T   \
	VPADDW  T, L, L     \
	VPSLLQ  $32, L, T   \
	VPADDW  T, L, L     \
	VPSHUFB Z20, X, X   \
	VPSUBW  X, L, L     \
	VPRORQ  $32, L, T   \
	VPMINUW T, L, L     \
	VPRORQ  $16, L, T   \
	VPMINUW T, L, L     \
	VPANDQ  Z24, L, L   \ // keep one of four equal words
	VPSRLVQ L, Z19, L   \
	VPCOMPRESSQ.Z L, K3, L \
	VPSHUFB Z21, L, L   \
	VMOVDQU64 L, 8(R11)

// ADVANCE moves ahead by as many words as were filled.
#define ADVANCE(size) \
	KMOVB   K3, AX           \
	POPCNTL AX, AX           \
	LEAQ    (R10)(AX*8), R10 \
	LEAQ    (R11)(AX*8), R11 \
	ADDQ    $size, SI

// func append128AVX512(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int
TEXT ·append128AVX512(SB), NOSPLIT, $0-64
	ENTER(256, orders16, pairTable_lowCodes, pairTable_lowBits)
	CMPQ SI, R9
	JAE  done

group:
	// Elements 0-3, 4-7, 8-11, and 12-15 of every 16, in Z0, Z1, Z2, Z3.
	VMOVDQU64    (SI), Z0
	VMOVDQU64    128(SI), Z4
	VMOVDQA64    Z0, Z2
	VMOVDQA64    Z4, Z6
	VPERMT2Q     64(SI), Z28, Z0   // lanes 0-3 of Z0, then of Z1
	VPERMT2Q     192(SI), Z28, Z4  // lanes 4-7
	VPERMT2Q     64(SI), Z27, Z2   // lanes of Z2, then of Z3
	VPERMT2Q     192(SI), Z27, Z6
	VSHUFI64X2   $0xee, Z4, Z0, Z1
	VINSERTI64X4 $1, Y4, Z0, Z0
	VSHUFI64X2   $0xee, Z6, Z2, Z3
	VINSERTI64X4 $1, Y6, Z2, Z2

	FOURS(Z0, Z4, Z8, Z12, Z13)
	FOURS(Z1, Z5, Z9, Z12, Z13)
	FOURS(Z2, Z6, Z10, Z12, Z13)
	FOURS(Z3, Z7, Z11, Z12, Z13)
	JOIN(Z0, Z8, Z1, Z9, Z9)     // Z8: length of the first four, Z9: of the first eight
	JOIN(Z2, Z10, Z3, Z11, Z11)  // Z10: of the third four, Z11: of the last eight
	JOIN(Z0, Z9, Z2, Z11, Z11)   // Z11: of all 16
	ENDS(Z11, Z1, Z2, done)
	APPEND(Z0, Z11, Z1, Z3, Z12, Z2, Z13)

	VPCMPUQ   $6, Z9, Z3, K4   // the word begins in the last eight
	VPSUBQ    Z9, Z3, K4, Z3
	VPBLENDMQ Z10, Z8, K4, Z8
	VPBLENDMQ Z6, Z4, K4, Z4
	VPBLENDMQ Z7, Z5, K4, Z5
	VPCMPUQ   $6, Z8, Z3, K4   // in the last four of these
	VPSUBQ    Z8, Z3, K4, Z3
	VPBLENDMQ Z5, Z4, K4, Z4
	MARK(Z4, Z3, Z5)
	ADVANCE(256)
	CMPQ SI, R9
	JB   group

done:
	LEAVE
	SHRQ $8, SI
	MOVQ SI, ret+56(FP)
	RET

// func append64AVX512(w *bitWriter, t *pairTable, idx []byte, coded, marks *stretch) int
TEXT ·append64AVX512(SB), NOSPLIT, $0-64
	ENTER(128, orders8, pairTable_lowCodes, pairTable_lowBits)
	CMPQ SI, R9
	JAE  done

group:
	// Elements 0-3 and 4-7 of every 8, in Z0 and Z1.
	VMOVDQU64 (SI), Z0
	VMOVDQA64 Z0, Z1
	VPERMT2Q  64(SI), Z28, Z0
	VPERMT2Q  64(SI), Z27, Z1

	FOURS(Z0, Z4, Z8, Z12, Z13)
	FOURS(Z1, Z5, Z9, Z12, Z13)
	JOIN(Z0, Z8, Z1, Z9, Z11) // Z8: length of the first four, Z11: of all eight
	ENDS(Z11, Z1, Z2, done)
	APPEND(Z0, Z11, Z1, Z3, Z12, Z2, Z13)

	VPCMPUQ   $6, Z8, Z3, K4 // the word begins in the last four
	VPSUBQ    Z8, Z3, K4, Z3
	VPBLENDMQ Z5, Z4, K4, Z4
	MARK(Z4, Z3, Z5)
	ADVANCE(128)
	CMPQ SI, R9
	JB   group

done:
	LEAVE
	SHRQ $7, SI
	MOVQ SI, ret+56(FP)
	RET
