// Decodes a DF11 unit, or a run of its chunks, to BF16 weights (docs/format.md §9).
//
// A block of 512 threads decodes tiles, one after the other. A tile is a chunk of the format: 4096
// bytes of the coded stream, 8 bytes (a window) per thread. Per tile:
//
//   1. every thread counts the codes that start in its window;
//   2. a prefix sum over the block tells where its exponents go;
//   3. every thread decodes again and puts exponents, as bytes, into shared memory;
//   4. the block joins them with sign_mantissa, 8 weights per thread at a time.
//
// Both passes look up as many bits as a table has, and get several whole codes at once:
//
//   marks[x]    bit i is set where a code starts, i bits into x; the top bit set is where the last
//               whole code ends. 0: the first code is not whole.
//   symbols[x]  up to three symbols in the low bytes, the bits of their codes at 24, their number
//               at 28. 0: the first code is not whole.
//
// Input may be hostile once the caller has seen to it that buffers have their sizes: lengths are
// taken as 1..32, jumps stay within luts, and a tile writes its own weights only. So every loop
// ends and no access leaves a buffer, whatever the bytes; a corrupt unit gives wrong weights.
#include "device.h"

constexpr u32 THREADS = 512;         // threads, and windows, of a tile
constexpr u32 WARPS = THREADS / 32;
constexpr u32 WINDOW_BITS = 64;      // docs/format.md §1
constexpr u32 TILE_BYTES = 4096;     // docs/format.md §1
constexpr u32 GAP_BITS = 5;          // docs/format.md §7
constexpr u32 ROW = 256;             // docs/format.md §6: one lookup table
constexpr u32 JUMP = 240;            // docs/format.md §6: from here on a value is a jump
constexpr u32 MAX_CODE = 32;         // docs/format.md §5
constexpr u32 TABLE_BITS = 12;       // of the ready tables, and the most that fit an entry
constexpr u32 OWN_TABLE_BITS = 11;   // the most of decode's tables: larger ones cost more than they save
constexpr u32 ENTRY_SYMBOLS = 3;     // symbols in an entry
constexpr u32 MAX_TILES = 8;         // tiles per block of decode
constexpr u32 MIN_SHARED = THREADS * 4 + 4;  // docs/format.md §9: what a launch gives at least

extern __shared__ u32x4 shared_memory[];

// Code is one code: its symbol and its length, which is 0 where it is not known.
struct Code {
  u32 symbol, n_bits;
};

// Luts are the stored tables.
struct Luts {
  const u8 *rows;
  u32 n_rows;  // the last one has the lengths

  // The table that a jump leads to.
  DEVICE const u8 *row(const Luts &l, u32 jump) { return l.rows + min(ROW - jump, l.n_rows - 1) * ROW; }
  DEVICE u32 length(const Luts &l, u32 symbol) {
    return min(max(l.rows[(l.n_rows - 1) * ROW + symbol], 1), MAX_CODE);
  }
};

// Tables are the multi-symbol tables in shared memory, with 2^n_bits entries each.
struct Tables {
  u32 *symbols;
  u16 *marks;
  u32 n_bits;
};

// Unit is what a launch is given.
struct Unit {
  Luts luts;
  const u8 *stream, *sign_mantissa, *gaps;
  const u32 *positions;
  u16 *out;
  u32 n_bytes, n_elems, n_tiles;
};

// Window is 96 bits of the stream, the next one on top.
struct Window {
  u32 high, middle, low;
};

DEVICE void skip(Window &w, u32 n_bits) {
  w.high = funnel_left(w.high, w.middle, n_bits);
  w.middle = funnel_left(w.middle, w.low, n_bits);
  w.low = funnel_left(w.low, 0, n_bits);
}

// ---- Tables ----

// walk decodes one code as the format says, at most four lookups.
DEVICE Code walk(const Luts &luts, u32 bits) {
  u32 v = luts.rows[bits >> 24];
  for (int shift = 16; shift >= 0 && v >= JUMP; shift -= 8) v = Luts::row(luts, v)[bits >> shift & 255];
  return {v, Luts::length(luts, v)};
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

// build_entry makes entry x of both tables.
DEVICE void build_entry(const Luts &luts, const u32 *slots, const Tables &t, u32 x) {
  u32 pos = 0, marks = 1, symbols = 0, n = 0, used = 0;
  while (pos < t.n_bits) {
    Code c = prefix_code(luts, slots, x << (32 - t.n_bits) << pos, t.n_bits - pos);
    if (c.n_bits == 0) break;
    pos += c.n_bits;
    marks |= 1u << pos;
    if (n < ENTRY_SYMBOLS) {
      symbols |= c.symbol << (8 * n++);
      used = pos;
    }
  }
  t.symbols[x] = symbols | used << 24 | n << 28;
  t.marks[x] = n == 0 ? 0 : marks;
}

// build makes both tables; the whole block calls it. slots has room for one table of the format. The
// caller needs a barrier before it uses the tables.
DEVICE void build(const Luts &luts, u32 *slots, const Tables &t) {
  u32 thread = thread_index();
  if (thread < ROW) slots[thread] = describe_slot(luts, thread);
  barrier();
  for (u32 x = thread; x < 1u << t.n_bits; x += THREADS) build_entry(luts, slots, t, x);
}

// ---- One tile ----

// load_word gets the big-endian word at byte `at` of the stream, zeros behind its end.
DEVICE u32 load_word(const Unit &u, u32 at) {
  u32 w = 0;
  for (u32 i = 0; i < 4; i++)
    if (at + i < u.n_bytes) w |= u32(u.stream[at + i]) << (24 - 8 * i);
  return w;
}

// load_window gets a thread's window and the four bytes behind it, which the next lane has too.
DEVICE Window load_window(const Unit &u, u32 window) {
  Window w;
  u32 at = window * 8;
  if (((u64)u.stream & 7) == 0 && at + 8 <= u.n_bytes) {
    u32x2 v = *(const u32x2 *)(u.stream + at);
    w.high = permute(v.x, 0, 0x0123);
    w.middle = permute(v.y, 0, 0x0123);
  } else {
    w.high = load_word(u, at);
    w.middle = load_word(u, at + 4);
  }
  w.low = shuffle_down(w.high, 1);
  if (window % 32 == 31) w.low = load_word(u, at + 8);
  return w;
}

// load_gap gets the bits of a window before its first code.
DEVICE u32 load_gap(const Unit &u, u32 window) {
  u32 bit = window * GAP_BITS % 8;
  u64 at = (u64)window * GAP_BITS / 8;
  u32 v = u32(u.gaps[at]) << 8;
  if (bit + GAP_BITS > 8) v |= u.gaps[at + 1];
  return v >> (16 - GAP_BITS - bit) & 31;
}

// count_codes counts the codes that start in a window.
DEVICE u32 count_codes(const Unit &u, const Tables &t, Window w, u32 gap) {
  u32 n = 0, pos = gap;
  skip(w, gap);
  while (pos < WINDOW_BITS) {
    u32 used, left = WINDOW_BITS - pos, marks = t.marks[w.high >> (32 - t.n_bits)];
    if (marks != 0) {
      used = 31 - __builtin_clz(marks);
      if (used >= left) return n + __builtin_popcount(marks & ((1u << left) - 1));
      n += __builtin_popcount(marks) - 1;
    } else {
      used = walk(u.luts, w.high).n_bits;
      n++;
    }
    skip(w, used);
    pos += used;
  }
  return n;
}

// sum_before returns the sum of n over all threads before this one. It has a barrier inside; the
// caller needs another one before the next call.
DEVICE u32 sum_before(u32 n, u32 *totals) {
  u32 lane = thread_index() % 32, warp = thread_index() / 32;
  u32 sum = n;
  for (u32 d = 1; d < 32; d *= 2) {
    u32 v = shuffle_up(sum, d);
    if (lane >= d) sum += v;
  }
  if (lane == 31) totals[warp] = sum;
  barrier();
  u32 total = totals[lane % WARPS];
  for (u32 d = 1; d < WARPS; d *= 2) {
    u32 v = shuffle_up(total, d);
    if (lane % WARPS >= d) total += v;
  }
  u32 before = shuffle(total, (warp + WARPS - 1) % WARPS);
  return sum - n + (warp == 0 ? 0 : before);
}

// put_bytes stores bytes from..to of v.
DEVICE void put_bytes(u8 *p, u32 v, u32 from, u32 to) {
  NO_UNROLL for (; from < to; from++) p[from] = v >> 8 * from;
}

// put_exponents decodes n symbols and stores them at exponents[at]: whole words where they are its
// own, bytes at both ends.
DEVICE void put_exponents(const Unit &u, const Tables &t, Window w, u32 gap, u8 *exponents, u32 at, u32 n) {
  u64 bytes = 0;
  u32 head = at % 4, fill = head;
  u8 *word = exponents + (at - head);
  skip(w, gap);
  while (n > 0) {
    u32 entry = t.symbols[w.high >> (32 - t.n_bits)];
    u32 used = entry >> 24 & 15, count = entry >> 28, symbols = entry & 0xffffff;
    if (count == 0) {
      Code c = walk(u.luts, w.high);
      symbols = c.symbol, used = c.n_bits, count = 1;
    }
    bytes |= (u64)symbols << 8 * fill;
    count = min(count, n);
    n -= count;
    fill += count;
    if (fill >= 4) {
      if (head == 0) {
        *(u32 *)word = (u32)bytes;
      } else {
        put_bytes(word, (u32)bytes, head, 4);
        head = 0;
      }
      word += 4, fill -= 4, bytes >>= 32;
    }
    skip(w, used);
  }
  put_bytes(word, (u32)bytes, head, fill);
}

// join makes four weights of four exponents and sign_mantissa bytes, two to a word.
DEVICE u32x2 join(u32 exponents, u32 sm) {
  u32 high = (sm & 0x80808080) | (exponents >> 1 & 0x7f7f7f7f);
  u32 low = (sm & 0x7f7f7f7f) | (exponents << 7 & 0x80808080);
  return {permute(low, high, 0x5140), permute(low, high, 0x7362)};
}

DEVICE u16 join_one(u32 exponent, u32 sm) { return (sm & 0x80) << 8 | exponent << 7 | (sm & 0x7f); }

// put_weights writes n weights from base on. exponents[0] belongs to the weight base rounded down to a
// multiple of 8, so that a group of 8 is aligned everywhere if the buffers are. It counts from there:
// base + n may be anything if n is 0, but what the exponents have room for never wraps.
DEVICE void put_weights(const Unit &u, const u8 *exponents, u32 base, u32 n) {
  bool aligned = (((u64)u.sign_mantissa & 7) | ((u64)u.out & 15)) == 0;
  u32 skew = base % 8, end = skew + n;
  const u8 *sign_mantissa = u.sign_mantissa + (base - skew);
  u16 *out = u.out + (base - skew);
  for (u32 i = 8 * thread_index(); i < end; i += 8 * THREADS) {
    if (aligned && i >= skew && i + 8 <= end) {
      u32x2 sm = *(const u32x2 *)(sign_mantissa + i);
      u32x2 e = *(const u32x2 *)(exponents + i);
      u32x2 a = join(e.x, sm.x), b = join(e.y, sm.y);
      *(u32x4 *)(out + i) = {a.x, a.y, b.x, b.y};
      continue;
    }
    NO_UNROLL for (u32 k = max(i, skew); k < min(i + 8, end); k++) out[k] = join_one(exponents[k], sign_mantissa[k]);
  }
}

// tile_end is the weight behind a tile's last. The last tile's is not read: its entry may be missing
// (docs/format.md §7).
DEVICE u32 tile_end(const Unit &u, u32 tile) {
  return tile + 1 < u.n_tiles ? min(u.positions[tile + 1], u.n_elems) : u.n_elems;
}

DEVICE u32 tile_size(const Unit &u, u32 tile) {
  u32 base = u.positions[tile], end = tile_end(u, tile);
  return end > base ? end - base : 0;
}

// decode_tile is called by the whole block. exponents has room for `room` bytes.
DEVICE void decode_tile(const Unit &u, const Tables &t, u32 *totals, u8 *exponents, u32 room, u32 tile) {
  u32 window = tile * THREADS + thread_index();
  Window w = load_window(u, window);
  u32 gap = load_gap(u, window);
  u32 count = count_codes(u, t, w, gap);
  u32 at = sum_before(count, totals);
  u32 base = u.positions[tile], skew = base % 8;
  u32 n = min(tile_size(u, tile), room - skew);
  put_exponents(u, t, w, gap, exponents, skew + at, at < n ? min(count, n - at) : 0);
  barrier();
  put_weights(u, exponents, base, n);
}

// ---- Entry points ----

DEVICE Unit make_unit(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions,
                      const u8 *gaps, u16 *out, int n_luts, int n_bytes, int n_elems, u32 n_tiles) {
  return {{luts, (u32)n_luts}, stream, sign_mantissa, gaps, positions, out, (u32)n_bytes, (u32)n_elems, n_tiles};
}

// The largest tables that fit beside the exponents, or 0 bits.
DEVICE u32 table_bits(u32 room) {
  u32 n_entries = room / 6;
  return n_entries < 2 ? 0 : min(31 - __builtin_clz(n_entries), OWN_TABLE_BITS);
}

// decode has the interface of the official kernel: one block of 512 threads for each 4096 bytes of
// the stream, and 512*4 + 4 + 2*(most weights of a chunk) bytes of shared memory or more. It builds
// tables itself, as large as the shared memory allows, so in large grids one block does the work of
// up to eight. With less shared memory than that it does nothing.
extern "C" __global__ void __launch_bounds__(512, 4)
    decode(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions, const u8 *gaps,
           u16 *out, int n_luts, int n_bytes, int n_elems) {
  Unit u = make_unit(luts, stream, sign_mantissa, positions, gaps, out, n_luts, n_bytes, n_elems, block_count());
  u32 per_block = min(max(u.n_tiles / 512, 1), MAX_TILES), first = block_index();
  if (first % per_block != 0 || shared_size() < MIN_SHARED) return;
  u32 last = min(first + per_block, u.n_tiles), most = 0;
  NO_UNROLL for (u32 tile = first; tile < last; tile++) most = max(most, tile_size(u, tile));

  u32 *totals = (u32 *)shared_memory, *slots = totals + WARPS;
  u8 *exponents = (u8 *)(slots + ROW);
  u32 room = shared_size() - (WARPS + ROW) * 4;
  u32 n_exponents = min(most, room - 128) + 16 & ~7u;  // what is left holds 16 entries at least
  Tables t = {(u32 *)(exponents + n_exponents), 0, table_bits(room - n_exponents)};
  if (t.n_bits == 0) return;
  t.marks = (u16 *)(t.symbols + (1u << t.n_bits));
  build(u.luts, slots, t);
  barrier();
  for (u32 tile = first; tile < last; tile++) decode_tile(u, t, totals, exponents, n_exponents, tile);
}

// build_tables makes ready tables for decode_tiles: 4096 words of symbols, then 4096 half words of
// marks. One block of 512 threads, 1024 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(512, 1) build_tables(const u8 *luts, int n_luts, u32 *tables) {
  Tables t = {tables, (u16 *)(tables + (1u << TABLE_BITS)), TABLE_BITS};
  build({luts, (u32)n_luts}, (u32 *)shared_memory, t);
}

// decode_tiles is decode with ready tables, 16-byte aligned, and with any number of blocks for
// n_tiles tiles. Shared memory: 64 + 24576 + (most weights of a chunk, plus 16) bytes.
extern "C" __global__ void __launch_bounds__(512, 4)
    decode_tiles(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions, const u8 *gaps,
                 u16 *out, int n_luts, int n_bytes, int n_elems, const u32x4 *tables, int n_tiles) {
  Unit u = make_unit(luts, stream, sign_mantissa, positions, gaps, out, n_luts, n_bytes, n_elems, n_tiles);
  constexpr u32 SIZE = 6u << TABLE_BITS, FIXED = WARPS * 4 + SIZE;
  if (shared_size() < FIXED + 16) return;
  u32 *totals = (u32 *)shared_memory;
  u32x4 *copy = shared_memory + WARPS / 4;
  NO_UNROLL for (u32 i = thread_index(); i < SIZE / 16; i += THREADS) copy[i] = tables[i];
  Tables t = {(u32 *)copy, (u16 *)((u32 *)copy + (1u << TABLE_BITS)), TABLE_BITS};
  u8 *exponents = (u8 *)copy + SIZE;
  barrier();
  for (u32 tile = block_index(); tile < u.n_tiles; tile += block_count())
    decode_tile(u, t, totals, exponents, shared_size() - FIXED, tile);
}
