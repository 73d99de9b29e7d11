// The tables with which decode.cu finds codes, made from the stored ones (docs/format.md §6).
//
// A table decodes as many bits of a window at once as its index has. An entry has up to three
// symbols, the first one lowest, the bits of their codes from bit 24 on, and their number from bit
// 30 on. It's 0 if the first code is longer than the index; then the thread walks the stored
// tables. A code counts only if it starts in the window, as the lengths of the last entry's symbols
// show.
#pragma once
#include "device.h"

constexpr u32 THREADS = 512;         // threads, and windows, of a tile
constexpr u32 ROW = 256;             // docs/format.md §6: one lookup table
constexpr u32 JUMP = 240;            // docs/format.md §6: values from here up are jumps
constexpr u32 MAX_CODE = 32;         // docs/format.md §5
constexpr u32 TABLE_BITS = 10;       // largest width of the table's index
constexpr u32 ENTRY_SYMBOLS = 3;     // symbols in an entry
constexpr u32 ENTRY_ONE = 64;        // one more symbol in an entry, from bit 24 on

// Code is the symbol and length of a code. If the code isn't known, the length is 0.
struct Code {
  u32 symbol, n_bits;
};

// Luts are the stored tables, one after the other.
struct Luts {
  const u8 *rows;
  u32 n_rows;  // the last one holds the lengths

  // row returns the table that a jump leads to, or the first table if that doesn't exist.
  DEVICE const u8 *row(const Luts &l, u32 jump) {
    u32 i = ROW - jump;
    return l.rows + (i < l.n_rows ? i : 0) * ROW;
  }
  DEVICE u32 length(const Luts &l, u32 symbol) {
    return min(max(l.rows[(l.n_rows - 1) * ROW + symbol], 1), MAX_CODE);
  }
};

// Tables are made from the stored tables, and are in shared memory.
struct Tables {
  u32 *entries;  // 2^n_bits
  u8 *lengths;   // of the codes of all symbols
  u32 n_bits;
};

// walk returns the symbol of one code as the format says, with at most four lookups.
DEVICE u32 walk(const Luts &luts, u32 bits) {
  u32 v = luts.rows[bits >> 24];
  NO_UNROLL for (int shift = 16; shift >= 0 && v >= JUMP; shift -= 8) v = Luts::row(luts, v)[bits >> shift & 255];
  return v;
}

// uniform reports whether all n slots from p on hold v. n is a power of two, and p is aligned to it
// within luts.
DEVICE bool uniform(const u8 *p, u32 n, u32 v) {
  u32 i = 0;
  if (n >= 4 && ((u64)p & 3) == 0) {
    NO_UNROLL while (i < n && *(const u32 *)(p + i) == v * 0x01010101) i += 4;
  } else {
    NO_UNROLL while (i < n && p[i] == v) i++;
  }
  return i >= n;
}

// describe_slot describes a slot of the first table: its value, from bit 8 on its length, and from
// bit 16 on how many leading bits of the slot's number decide its value, because all slots that
// share them hold it.
DEVICE u32 describe_slot(const Luts &luts, u32 slot) {
  u32 v = luts.rows[slot], decided = 8;
  NO_UNROLL for (u32 half = 1; half < ROW; half *= 2, decided--) {
    u32 other = (slot ^ half) & ~(half - 1);
    if (!uniform(luts.rows + other, half, v)) break;
  }
  return v | Luts::length(luts, v) << 8 | decided << 16;
}

// prefix_code finds the code at the top of bits, when only `known` bits are known and the rest is
// zero. It can't take the zeros for bits, because the end symbol's slots hold a neighbor's value.
// So a code counts only if every continuation leads to it.
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

// build_entry builds entry x of the table.
DEVICE void build_entry(const Luts &luts, const u32 *slots, const Tables &t, u32 x) {
  u32 pos = 0, entry = 0;
  NO_UNROLL for (u32 n = 0; n < ENTRY_SYMBOLS; n++) {  // if unrolled, ptxas makes calls instead of jumps
    Code c = prefix_code(luts, slots, x << (32 - t.n_bits) << pos, t.n_bits - pos);
    if (c.n_bits == 0) break;
    pos += c.n_bits;
    entry = (entry | c.symbol << 8 * n) + ((ENTRY_ONE + c.n_bits) << 24);
  }
  t.entries[x] = entry;
}

// build builds the tables; the whole block calls it. slots holds one table of the format. The
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
