//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// Four chunks decoded in turns, in fast.go's terms. Of a lane, two values are in registers all the time:
//
//	reg  the bits to look up on top, and code starts of the bits shifted out below, as in multiTable.step
//	at   codes of the chunk so far, times 256, plus bits of this group
//
// Everything else of a lane stays in memory and is touched once in a group. The lanes' codes are neighbors, so that one base
// and a constant reach each of them.
#define TABLE SI
#define CODES DI
#define LANES R8
#define STOP  R9
#define E     AX
#define S     BX
#define U     CX

// FETCH begins a group of lane i.
#define FETCH(i, reg, at) \
	MOVQ  (lane_pos+i*lane__size)(LANES), U    \
	MOVQ  (lane_stream+i*lane__size)(LANES), S \
	MOVQ  U, E                                 \
	SHRQ  $3, E                                \
	MOVQ  (S)(E*1), reg                        \
	BSWAPQ reg                                 \
	ANDQ  $7, U                                \
	SHLXQ U, reg, reg                          \
	MOVQ  (lane_n+i*lane__size)(LANES), at     \
	SHLQ  $8, at

// STEP does one lookup: stores up to six symbols, shifts their bits out and their starts in. E keeps the entry's top.
#define STEP(i, reg, at) \
	MOVQ    reg, S                                  \
	SHRQ    $(64-const_multiBits), S                \
	MOVQ    (TABLE)(S*8), E                         \
	MOVWLZX multiTable_starts(TABLE)(S*2), S        \
	MOVQ    at, U                                   \
	SHRQ    $8, U                                   \
	MOVQ    E, (codes_exponents+i*codes__size)(CODES)(U*1) \
	SHRQ    $const_multiTopShift, E                 \
	SHLXQ   E, reg, reg                             \
	ORQ     S, reg                                  \
	ADDQ    E, at

#define STEPS \
	STEP(0, R10, R11) \
	STEP(1, R12, R13) \
	STEP(2, R14, R15) \
	STEP(3, DX, BP)

// END ends a group of lane i right behind its last STEP: puts the code starts in their place, as codes.putStarts does, and
// notes in STOP whether the lane must stop. STOP moves up by one bit with every lane and takes in 1 if the last lookup found
// no code, so that the last one, lane 0, is bit 0; the bits above the lanes' take what says that the lane is behind its chunk.
#define END(i, reg, at) \
	CMPQ    E, $1                                   \
	ADCQ    STOP, STOP                              \
	MOVBLZX at, S                                   \ // bits of the group
	SHRQ    $8, at                                  \
	MOVQ    at, (lane_n+i*lane__size)(LANES)        \
	MOVQ    S, U                                    \
	NOTQ    U                                       \ // mod 64: 63 - bits
	ADDQ    reg, reg                                \
	SHLXQ   U, reg, reg                             \
	MOVQ    (lane_pos+i*lane__size)(LANES), at      \
	MOVQ    at, U                                   \
	ANDQ    $7, U                                   \
	SHRXQ   U, reg, reg                             \
	ORQ     (lane_carry+i*lane__size)(LANES), reg   \
	MOVQ    at, U                                   \
	SHRQ    $3, U                                   \
	MOVQ    reg, E                                  \
	BSWAPQ  E                                       \
	MOVQ    E, (codes_starts+i*codes__size)(CODES)(U*1) \
	ADDQ    S, at                                   \
	MOVQ    at, (lane_pos+i*lane__size)(LANES)      \
	MOVQ    at, E                                   \
	SHRQ    $3, E                                   \
	SUBQ    U, E                                    \
	SHLQ    $3, E                                   \
	SHLXQ   E, reg, reg                             \
	MOVQ    reg, (lane_carry+i*lane__size)(LANES)   \
	SHRQ    $15, at                                 \ // 2^15 bits are a chunk
	SHLQ    $const_maxLanes, at                                 \
	ORQ     at, STOP

// func groups4BMI2(m *multiTable, lanes *[maxLanes]lane, cs *codes) (lost uint)
TEXT ·groups4BMI2(SB), NOSPLIT, $8-32
	MOVQ m+0(FP), TABLE
	MOVQ lanes+8(FP), LANES
	MOVQ cs+16(FP), CODES

loop:
	FETCH(0, R10, R11)
	FETCH(1, R12, R13)
	FETCH(2, R14, R15)
	FETCH(3, DX, BP)
	STEPS
	STEPS
	STEPS
	STEPS
	XORL STOP, STOP
	STEP(3, DX, BP)
	END(3, DX, BP)
	STEP(2, R14, R15)
	END(2, R14, R15)
	STEP(1, R12, R13)
	END(1, R12, R13)
	STEP(0, R10, R11)
	END(0, R10, R11)
	TESTQ STOP, STOP
	JZ    loop

	ANDQ $(1<<const_maxLanes-1), STOP
	MOVQ STOP, lost+24(FP)
	RET
