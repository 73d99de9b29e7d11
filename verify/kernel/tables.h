// The tables by which decode.cu finds codes, made from the stored ones (docs/format.md §6).
//
// The bits of a window are looked up in a table, as many at once as its index has. An entry has up to three symbols, the
// first one lowest; the bits of their codes at 24; their number at 30. It is 0 if the first code is longer than the index:
// then the code is walked through the stored tables. A code counts only where it starts in the window, which shows in the
// lengths of the last entry's symbols.
#pragma once
#include "device.h"

constexpr u32 THREADS = 512;         // threads, and windows, of a tile
constexpr u32 ROW = 256;             // docs/format.md §6: one lookup table
constexpr u32 JUMP = 240;            // docs/format.md §6: from here on a value is a jump
constexpr u32 MAX_CODE = 32;         // docs/format.md §5
constexpr u32 TABLE_BITS = 10;       // of the table's index, at most
constexpr u32 ENTRY_SYMBOLS = 3;     // symbols in an entry
constexpr u32 ENTRY_ONE = 64;        // a symbol more in an entry, from bit 24 on

// Code is one code: its symbol and its length, which is 0 where it is not known.
struct Code {
  u32 symbol, n_bits;
};

// Luts are the stored tables, one behind the other.
struct Luts {
  const u8 *rows;
  u32 n_rows;  // the last one has the lengths

  // The table that a jump leads to: the first one for jumps to where there is none.
  DEVICE const u8 *row(const Luts &l, u32 jump) {
    u32 i = ROW - jump;
    return l.rows + (i < l.n_rows ? i : 0) * ROW;
  }
  DEVICE u32 length(const Luts &l, u32 symbol) {
    return min(max(l.rows[(l.n_rows - 1) * ROW + symbol], 1), MAX_CODE);
  }
};

// Tables are made of the stored tables, and lie in shared memory.
struct Tables {
  u32 *entries;  // 2^n_bits
  u8 *lengths;   // of the codes of all symbols
  u32 n_bits;
};

// walk finds the symbol of one code as the format says, in at most four lookups.
DEVICE u32 walk(const Luts &luts, u32 bits) {
  u32 v = luts.rows[bits >> 24];
  NO_UNROLL for (int shift = 16; shift >= 0 && v >= JUMP; shift -= 8) v = Luts::row(luts, v)[bits >> shift & 255];
  return v;
}

// uniform says whether n slots from p on, n a power of two and p aligned to it within luts, all hold v.
DEVICE bool uniform(const u8 *p, u32 n, u32 v) {
  u32 i = 0;
  if (n >= 4 && ((u64)p & 3) == 0) {
    NO_UNROLL while (i < n && *(const u32 *)(p + i) == v * 0x01010101) i += 4;
  } else {
    NO_UNROLL while (i < n && p[i] == v) i++;
  }
  return i >= n;
}

// A first-table slot: value, length at 8, and at 16 how many leading bits of the slot's number decide
// its value: all slots that share them hold it.
DEVICE u32 describe_slot(const Luts &luts, u32 slot) {
  u32 v = luts.rows[slot], decided = 8;
  NO_UNROLL for (u32 half = 1; half < ROW; half *= 2, decided--) {
    u32 other = (slot ^ half) & ~(half - 1);
    if (!uniform(luts.rows + other, half, v)) break;
  }
  return v | Luts::length(luts, v) << 8 | decided << 16;
}

// prefix_code finds the code at the top of bits, of which only `known` are known and the rest is
// zero. Zeros will not do in their place: the end symbol's slots hold a neighbour's value, so a code
// counts only if every continuation leads to it.
DEVICE Code prefix_code(const Luts &luts, const u32 *slots, u32 bits, u32 known) {
  u32 d = slots[bits >> 24], v = d & 255, n_bits = d >> 8 & 255;
  if (v < JUMP) return {v, (d >> 16) <= known && n_bits <= known ? n_bits : 0};
  if (known <= 8) return {0, 0};
  const u8 *first = Luts::row(luts, v) + (bits >> 16 & 255);
  v = *first;
  n_bits = Luts::length(luts, v);
  if (v >= JUMP || n_bits > known || !uniform(first, 1u << (16 - known), v)) return {0, 0};
  return {v, n_bits};
}

// build_entry makes entry x of the table.
DEVICE void build_entry(const Luts &luts, const u32 *slots, const Tables &t, u32 x) {
  u32 pos = 0, entry = 0;
  NO_UNROLL for (u32 n = 0; n < ENTRY_SYMBOLS; n++) {  // unrolled, ptxas calls what it could jump to
    Code c = prefix_code(luts, slots, x << (32 - t.n_bits) << pos, t.n_bits - pos);
    if (c.n_bits == 0) break;
    pos += c.n_bits;
    entry = (entry | c.symbol << 8 * n) + ((ENTRY_ONE + c.n_bits) << 24);
  }
  t.entries[x] = entry;
}

// build makes the tables; the whole block calls it. slots has room for one table of the format. The
// caller needs a barrier before it uses the tables.
DEVICE void build(const Luts &luts, u32 *slots, const Tables &t) {
  u32 thread = thread_index();
  if (thread < ROW) {
    slots[thread] = describe_slot(luts, thread);
    t.lengths[thread] = Luts::length(luts, thread);
  }
  barrier();
  for (u32 x = thread; x < 1u << t.n_bits; x += THREADS) build_entry(luts, slots, t, x);
}
