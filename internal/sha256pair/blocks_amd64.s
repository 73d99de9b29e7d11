//go:build !noasm

#include "textflag.h"

// SHA-256 of two messages at once with the SHA instructions. SHA256RNDS2 does two rounds and waits for the two before
// it, so one message leaves the unit idle half of the time; a second one, independent of the first, fills the gaps.
// Operands are in Go's order: sources first, destination last.
//
//	         message a    message b
//	state    X1, X2       X7, X8     as the instructions want it: A B E F and C D G H, highest word first
//	schedule X3 … X6      X9 … X12   the last 16 words, four to a register
//	data     SI           DX
//
//	X0   four words plus their constants: the operand that SHA256RNDS2 does not name
//	X13  scratch
//	X14  the byte order of the words in a message
//	CX   the constants
//	BX   blocks that are left

// FOUR does rounds 4n to 4n+3 of one message: w holds their words, cdgh and abef the state. The two halves of the state
// change places twice, so they end where they began.
#define FOUR(n, w, abef, cdgh) \
	MOVO        w, X0            \
	PADDD       (16*n)(CX), X0   \
	SHA256RNDS2 X0, abef, cdgh   \
	PSHUFD      $0x0e, X0, X0    \
	SHA256RNDS2 X0, cdgh, abef

// LOAD reads the words of rounds 4n to 4n+3 from the message at p.
#define LOAD(n, p, w) \
	MOVOU  (16*n)(p), w \
	PSHUFB X14, w

// EXTEND finishes the four words that come after those in w3. The registers w0 to w3 hold the last 16 words, oldest
// first, and SHA256MSG1 has been applied to w0 when w1 was there. They replace w0.
#define EXTEND(w0, w2, w3) \
	MOVO       w3, X13      \
	PALIGNR    $4, w2, X13  \
	PADDD      X13, w0      \
	SHA256MSG2 w3, w0

// BOTH does four rounds of both messages with words that were loaded.
#define BOTH(n, a, b) \
	FOUR(n, a, X1, X2) \
	FOUR(n, b, X7, X8)

// STEP does rounds 4n to 4n+3 of both messages and prepares later ones: of the words a0 … a3 of message a, oldest first,
// a3 is what these rounds take, a0 gets the four words after it, and a2 is made ready for its turn.
#define STEP(n, a0, a2, a3, b0, b2, b3) \
	EXTEND(a0, a2, a3)  \
	FOUR(n, a3, X1, X2) \
	SHA256MSG1 a3, a2   \
	EXTEND(b0, b2, b3)  \
	FOUR(n, b3, X7, X8) \
	SHA256MSG1 b3, b2

// LAST is STEP where nothing has to be made ready any more.
#define LAST(n, a0, a2, a3, b0, b2, b3) \
	EXTEND(a0, a2, a3)  \
	FOUR(n, a3, X1, X2) \
	EXTEND(b0, b2, b3)  \
	FOUR(n, b3, X7, X8)

// UNPACK turns a state from memory, words A to H, into abef and cdgh; PACK does the opposite.
#define UNPACK(p, abef, cdgh) \
	MOVOU   (p), abef         \
	MOVOU   16(p), cdgh       \
	PSHUFD  $0xb1, abef, abef \
	PSHUFD  $0x1b, cdgh, cdgh \
	MOVO    abef, X13         \
	PALIGNR $8, cdgh, abef    \
	PBLENDW $0xf0, X13, cdgh

#define PACK(p, abef, cdgh) \
	PSHUFD  $0x1b, abef, abef \
	PSHUFD  $0xb1, cdgh, cdgh \
	MOVO    abef, X13         \
	PBLENDW $0xf0, cdgh, abef \
	PALIGNR $8, X13, cdgh     \
	MOVOU   abef, (p)         \
	MOVOU   cdgh, 16(p)

// func blocksSHANI(a, b *state, p, q *byte, n int)
TEXT ·blocksSHANI(SB), NOSPLIT, $64-40
	MOVQ  p+16(FP), SI
	MOVQ  q+24(FP), DX
	MOVQ  n+32(FP), BX
	LEAQ  constants<>(SB), CX
	MOVOU order<>(SB), X14
	MOVQ  a+0(FP), AX
	UNPACK(AX, X1, X2)
	MOVQ  b+8(FP), AX
	UNPACK(AX, X7, X8)

block:
	// The state before the block is added to the one after it.
	MOVOU X1, 0(SP)
	MOVOU X2, 16(SP)
	MOVOU X7, 32(SP)
	MOVOU X8, 48(SP)

	LOAD(0, SI, X3)
	LOAD(0, DX, X9)
	BOTH(0, X3, X9)

	LOAD(1, SI, X4)
	LOAD(1, DX, X10)
	BOTH(1, X4, X10)
	SHA256MSG1 X4, X3
	SHA256MSG1 X10, X9

	LOAD(2, SI, X5)
	LOAD(2, DX, X11)
	BOTH(2, X5, X11)
	SHA256MSG1 X5, X4
	SHA256MSG1 X11, X10

	LOAD(3, SI, X6)
	LOAD(3, DX, X12)
	STEP(3, X3, X5, X6, X9, X11, X12)

	STEP(4, X4, X6, X3, X10, X12, X9)
	STEP(5, X5, X3, X4, X11, X9, X10)
	STEP(6, X6, X4, X5, X12, X10, X11)
	STEP(7, X3, X5, X6, X9, X11, X12)
	STEP(8, X4, X6, X3, X10, X12, X9)
	STEP(9, X5, X3, X4, X11, X9, X10)
	STEP(10, X6, X4, X5, X12, X10, X11)
	STEP(11, X3, X5, X6, X9, X11, X12)
	STEP(12, X4, X6, X3, X10, X12, X9)
	LAST(13, X5, X3, X4, X11, X9, X10)
	LAST(14, X6, X4, X5, X12, X10, X11)
	BOTH(15, X6, X12)

	MOVOU 0(SP), X13
	PADDD X13, X1
	MOVOU 16(SP), X13
	PADDD X13, X2
	MOVOU 32(SP), X13
	PADDD X13, X7
	MOVOU 48(SP), X13
	PADDD X13, X8
	ADDQ  $64, SI
	ADDQ  $64, DX
	DECQ  BX
	JNZ   block

	MOVQ a+0(FP), AX
	PACK(AX, X1, X2)
	MOVQ b+8(FP), AX
	PACK(AX, X7, X8)
	RET

// func cpuid7() (ebx uint32)
TEXT ·cpuid7(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL BX, ebx+0(FP)
	RET

// The words of a message are big-endian.
DATA order<>+0(SB)/8, $0x0405060700010203
DATA order<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL order<>(SB), RODATA|NOPTR, $16

// The constants of the 64 rounds, FIPS 180-4 section 4.2.2.
DATA constants<>+0(SB)/8, $0x71374491428a2f98
DATA constants<>+8(SB)/8, $0xe9b5dba5b5c0fbcf
DATA constants<>+16(SB)/8, $0x59f111f13956c25b
DATA constants<>+24(SB)/8, $0xab1c5ed5923f82a4
DATA constants<>+32(SB)/8, $0x12835b01d807aa98
DATA constants<>+40(SB)/8, $0x550c7dc3243185be
DATA constants<>+48(SB)/8, $0x80deb1fe72be5d74
DATA constants<>+56(SB)/8, $0xc19bf1749bdc06a7
DATA constants<>+64(SB)/8, $0xefbe4786e49b69c1
DATA constants<>+72(SB)/8, $0x240ca1cc0fc19dc6
DATA constants<>+80(SB)/8, $0x4a7484aa2de92c6f
DATA constants<>+88(SB)/8, $0x76f988da5cb0a9dc
DATA constants<>+96(SB)/8, $0xa831c66d983e5152
DATA constants<>+104(SB)/8, $0xbf597fc7b00327c8
DATA constants<>+112(SB)/8, $0xd5a79147c6e00bf3
DATA constants<>+120(SB)/8, $0x1429296706ca6351
DATA constants<>+128(SB)/8, $0x2e1b213827b70a85
DATA constants<>+136(SB)/8, $0x53380d134d2c6dfc
DATA constants<>+144(SB)/8, $0x766a0abb650a7354
DATA constants<>+152(SB)/8, $0x92722c8581c2c92e
DATA constants<>+160(SB)/8, $0xa81a664ba2bfe8a1
DATA constants<>+168(SB)/8, $0xc76c51a3c24b8b70
DATA constants<>+176(SB)/8, $0xd6990624d192e819
DATA constants<>+184(SB)/8, $0x106aa070f40e3585
DATA constants<>+192(SB)/8, $0x1e376c0819a4c116
DATA constants<>+200(SB)/8, $0x34b0bcb52748774c
DATA constants<>+208(SB)/8, $0x4ed8aa4a391c0cb3
DATA constants<>+216(SB)/8, $0x682e6ff35b9cca4f
DATA constants<>+224(SB)/8, $0x78a5636f748f82ee
DATA constants<>+232(SB)/8, $0x8cc7020884c87814
DATA constants<>+240(SB)/8, $0xa4506ceb90befffa
DATA constants<>+248(SB)/8, $0xc67178f2bef9a3f7
GLOBL constants<>(SB), RODATA|NOPTR, $256
