// Decodes a DF11 unit, or a range of its chunks, to BF16 weights (docs/format.md §9).
//
// A block of 512 threads decodes tiles, one after the other. A tile is a chunk of the format: 4096
// bytes of the coded stream, 8 bytes (a window) per thread. For each tile:
//
//   1. Every thread finds the codes that start in its window, and keeps their exponents in registers.
//   2. A prefix sum over the block says where the exponents go.
//   3. Every thread packs them into 8-byte words of shared memory, one byte each.
//   4. The block joins them with sign_mantissa, 16 weights per thread at a time.
//
// Input may be hostile, as long as the caller has checked the sizes of the buffers. Lengths count as
// 1..32, jumps stay within luts, and a tile writes only its own weights. So every loop ends and no
// access leaves a buffer, whatever the bytes are. A corrupt unit gives wrong weights.
#include "tables.h"

constexpr u32 WARPS = THREADS / 32;
constexpr u32 WINDOW_BITS = 64;      // docs/format.md §1
constexpr u32 GAP_BITS = 5;          // docs/format.md §7
constexpr u32 KEPT = 12;             // entries of a window kept in registers; a window with more is decoded again
constexpr u32 GROUP = 16;            // weights that a thread joins at once
constexpr u32 MAX_TILES = 8;         // tiles per block of decode
constexpr u32 MIN_SHARED = THREADS * 4 + 4;  // docs/format.md §9: the least that a launch has

extern __shared__ u32x4 shared_memory[];

// Unit is the input of a launch.
struct Unit {
  Luts luts;
  const u8 *stream, *sign_mantissa, *gaps;
  const u32 *positions;
  u16 *out;
  u32 n_bytes, n_elems, n_tiles;
};

// Window is 96 bits of the stream, with the next bit on top.
struct Window {
  u32 high, middle, low;
};

DEVICE void skip(Window &w, u32 n_bits) {
  w.high = funnel_left(w.high, w.middle, n_bits);
  w.middle = funnel_left(w.middle, w.low, n_bits);
  w.low = funnel_left(w.low, 0, n_bits);
}

// skip_wrap is skip for 0..31 bits. It uses only the low five bits of n_bits.
DEVICE void skip_wrap(Window &w, u32 n_bits) {
  w.high = funnel_left_wrap(w.high, w.middle, n_bits);
  w.middle = funnel_left_wrap(w.middle, w.low, n_bits);
  w.low = funnel_left_wrap(w.low, 0, n_bits);
}

// ---- One tile ----

// load_bytes returns the 12 bytes of the stream that begin at byte `at`, with zeros past its end.
DEVICE Window load_bytes(const Unit &u, u32 at) {
  Window w = {0, 0, 0};
  NO_UNROLL for (u32 end = at + 12; at < end; at++) {
    w.high = funnel_left(w.high, w.middle, 8);
    w.middle = funnel_left(w.middle, w.low, 8);
    w.low = w.low << 8 | (at < u.n_bytes ? u.stream[at] : 0);
  }
  return w;
}

// load_window returns a thread's window and the four bytes after it.
DEVICE Window load_window(const Unit &u, u32 window) {
  u32 at = window * 8;
  if (((u64)u.stream & 7) == 0 && at + 12 <= u.n_bytes) {
    u32x2 v = *(const u32x2 *)(u.stream + at);
    u32 behind = *(const u32 *)(u.stream + at + 8);
    return {permute(v.x, 0, 0x0123), permute(v.y, 0, 0x0123), permute(behind, 0, 0x0123)};
  }
  return load_bytes(u, at);
}

// load_gap returns how many bits of a window come before its first code.
DEVICE u32 load_gap(const Unit &u, u32 window) {
  u32 bit = window * GAP_BITS % 8;
  u64 at = (u64)window * GAP_BITS / 8;
  u32 v = u32(u.gaps[at]) << 8;
  if (bit + GAP_BITS > 8) v |= u.gaps[at + 1];
  return v >> (16 - GAP_BITS - bit) & 31;
}

// Codes are the codes that start in a window, in a thread's registers.
struct Codes {
  u32 entries[KEPT];  // in order; 0 after the last, and where a walk has to wait
  u32 n;              // codes
  bool complete;      // entries has all codes
};

// Place is a thread's position in its window.
struct Place {
  Window w;    // from this position on
  u32 at;      // bits so far and, from bit 6 on, the number of codes
  u32 next;    // the same after the entry
  u32 entry;   // the last entry that was looked up
};

// look_up returns the entry of the next codes.
DEVICE u32 look_up(const Tables &t, const Window &w) { return t.entries[w.high >> (32 - t.n_bits)]; }

// walk_entry returns an entry for only the next code. If the code has 32 bits, walk_entry skips
// them itself, because skip_wrap takes 32 for 0.
DEVICE u32 walk_entry(const Luts &luts, const Tables &t, Window &w) {
  u32 symbol = walk(luts, w.high), n_bits = t.lengths[symbol];
  skip(w, n_bits & 32);
  return symbol | (n_bits + ENTRY_ONE) << 24;
}

// take_entry moves ahead by one entry. At the window's last entry it stays in front of it and
// returns true: then the number of bits goes from 32..63 to 64..95. Bit 5 falls only there, because
// no entry has more than 32 bits.
DEVICE bool take_entry(const Luts &luts, const Tables &t, Place &p, bool walks) {
  p.entry = look_up(t, p.w);
  if (walks && p.entry == 0) p.entry = walk_entry(luts, t, p.w);
  p.next = p.at + (p.entry >> 24);
  if (p.at & ~p.next & 32) return true;
  p.at = p.next;
  skip_wrap(p.w, p.entry >> 24);
  return false;
}

// walks says at which entries a thread may walk, because a branch at every entry costs too much.
// The first three entries may have a single symbol each.
constexpr bool walks(u32 i) { return i < 3 || i % 3 == 2; }

// keep_entries takes entries from i on, until the window ends or the entries are full.
template <u32 i> DEVICE void keep_entries(const Luts &luts, const Tables &t, Place &p, Codes &c) {
  if constexpr (i < KEPT) {
    bool last = take_entry(luts, t, p, walks(i));
    c.entries[i] = p.entry;
    if (!last) keep_entries<i + 1>(luts, t, p, c);
  }
}

// find_codes finds the codes that start in a window.
DEVICE Codes find_codes(const Luts &luts, const Tables &t, Window w, u32 gap) {
  Codes c;
  Place p = {w, gap, 0, 0};
  skip(p.w, gap);
  UNROLL for (u32 i = 0; i < KEPT; i++) c.entries[i] = opaque(0);
  keep_entries<0>(luts, t, p, c);
  c.complete = p.at != p.next;  // only the last entry leaves p.at before itself
  if (!c.complete)
    while (!take_entry(luts, t, p, true)) {}
  u32 left = WINDOW_BITS - (p.at & 63), count = (p.next - p.at) >> 6;
  u32 second = t.lengths[p.entry & 255], third = second + t.lengths[p.entry >> 8 & 255];
  c.n = (p.at >> 6) + 1 + (count >= 2 && second < left) + (count >= 3 && third < left);
  return c;
}

// Pair holds the symbols of two entries, at most six, with the first one lowest.
struct Pair {
  u64 symbols;
  u32 n_bits;  // of all symbols, a byte each
};

DEVICE Pair pair(u32 a, u32 b) {
  u32 bits = a >> 27 & 24;
  return {(a & 0xffffff) | (u64)(b & 0xffffff) << bits, bits + (b >> 27 & 24)};
}

// Start holds the symbols of a window's first four entries, at most twelve, with the first one
// lowest.
struct Start {
  u64 low;     // the first eight
  u32 high;    // the others
  u32 n_bits;  // of all symbols, a byte each
};

DEVICE Start start(const Codes &c) {
  Pair a = pair(c.entries[0], c.entries[1]), b = pair(c.entries[2], c.entries[3]);
  return {a.symbols | b.symbols << a.n_bits, opaque(b.symbols >> (64 - a.n_bits)), a.n_bits + b.n_bits};
}

// has_first reports whether a window of n codes has that many exponents in its Start.
DEVICE bool has_first(const Start &s, u32 n, u32 many) { return n >= many && s.n_bits >= 8 * many; }

// first_seven returns a window's first exponents, at most seven, with their number in the top byte.
DEVICE u64 first_seven(const Start &s, u32 n) { return (s.low & ~0ull >> 8) | (u64)min(n, s.n_bits / 8) << 56; }

// Shared is how the warps of a block exchange data. Each warp stores first_seven of its first
// window, in two words, and the number of its codes, twice, so that 16 lanes find it in 16 banks.
struct Shared {
  u32x4 warps[WARPS];
};

// codes_before returns the number of codes in all windows before the thread's; n is the thread's
// own number. It sets next to `first` of the following window, and to seven zeros after the last
// window. It contains a barrier. The caller needs another barrier before the next call.
DEVICE u32 codes_before(u32 n, u64 first, Shared *s, u64 *next) {
  u32 lane = thread_index() % 32, warp = thread_index() / 32;
  u32 in_warp = n;  // from this lane on
  UNROLL for (u32 i = 0; i < 5; i++) in_warp = add_from_above(in_warp, 1u << i);
  if (lane == 0) s->warps[warp] = {(u32)first, (u32)(first >> 32), in_warp, in_warp};
  barrier();
  *next = (u64)shuffle_down(first >> 32, 1) << 32 | shuffle_down(first, 1);
  if (lane == 31) *next = warp == WARPS - 1 ? 7ull << 56 : *(u64 *)(s->warps + warp + 1);
  u32 sum = lane <= warp ? ((u32 *)(s->warps + lane))[2 + lane / 8] : 0;
  UNROLL for (u32 d = WARPS / 2; d > 0; d /= 2) sum += shuffle_down(sum, d);
  return shuffle(sum, 0) - in_warp;
}

// put_bytes stores the low n bytes of v at exponents[at].
DEVICE void put_bytes(u8 *exponents, u32 at, u64 v, u32 n, u32 room) {
  NO_UNROLL for (u32 i = 0; i < n && at + i < room; i++) exponents[at + i] = v >> 8 * i;
}

// put_slowly decodes a window again and stores its exponents from number `first` on, byte by byte.
DEVICE void put_slowly(const Unit &u, const Tables &t, u32 tile, u8 *exponents, u32 at, u32 first, u32 n, u32 room) {
  u32 window = tile * THREADS + thread_index_again();
  Window w = load_bytes(u, 8 * window);
  skip(w, load_gap(u, window));
  NO_UNROLL for (u32 i = 0; i < n;) {
    u32 entry = look_up(t, w);
    if (entry == 0) entry = walk_entry(u.luts, t, w);
    skip_wrap(w, entry >> 24);
    NO_UNROLL for (u32 count = entry >> 30; count > 0 && i < n; count--, i++, entry >>= 8)
      if (i >= first && at + i < room) exponents[at + i] = entry;
  }
}

// Packer is a thread's state of packing exponents into 8-byte words.
struct Packer {
  u64 word;     // part of a word, with the first exponent lowest
  u32 n_bits;   // in word
  u32 address;  // where the word goes in shared memory
};

DEVICE void put_pair(Packer &p, u32 entry_a, u32 entry_b) {
  Pair more = pair(entry_a, entry_b);
  u32 rest = 64 - p.n_bits;
  p.word |= more.symbols << p.n_bits;
  p.n_bits += more.n_bits;
  store_full(p.word, p.n_bits, p.address, more.symbols, rest);
}

// put_words stores the exponents at..end of a window, except those in a word that begins before it.
// Its last word ends with the first exponents of the next window.
DEVICE void put_words(const Codes &c, const Start &s, u8 *exponents, u32 at, u32 end, u64 next) {
  u32 base = shared_address(exponents), head = -at & 7;
  Packer p = {s.low >> 8 * head | shift_left(s.high, 64 - 8 * head), s.n_bits - 8 * head, base + at + head};
  store_full(p.word, p.n_bits, p.address, s.high, 8 * head);
  put_pair(p, c.entries[4], c.entries[5]);
  put_pair(p, c.entries[6], c.entries[7]);
  if (c.entries[8] != 0) {  // no walk waits here, so 0 is the end
    put_pair(p, c.entries[8], c.entries[9]);
    put_pair(p, c.entries[10], c.entries[11]);
  }
  if (p.address - base < end) *(u64 *)(exponents + (end & ~7u)) = p.word | next << (8 * end & 63);
}

// put_exponents stores a window's exponents from exponents[at] on. The thread that has a word's
// first byte stores the whole 8-byte word, if the next window's Start has the bytes that it lacks.
// Otherwise both windows go byte by byte, and so does a window whose entries aren't complete, or
// that goes beyond the room.
DEVICE void put_exponents(const Unit &u, const Tables &t, const Codes &c, const Start &s, u32 tile, u8 *exponents, u32 at,
                          u32 room, u64 next) {
  u32 end = at + c.n;
  u32 head = -at & 7, tail = -end & 7;  // exponents in the last word of the previous window, and of the next window in ours
  bool has_head = has_first(s, c.n, head), has_tail = (u32)(next >> 56) >= tail;
  // No thread comes before the first one, so it stores the beginning of its first word itself.
  if (thread_index() == 0 && head > 0 && has_head) *(u64 *)(exponents + (at & ~7u)) = s.low << (8 * at & 63);
  if (c.complete && has_head && has_tail && end <= room) {
    put_words(c, s, exponents, at, end, next);
  } else {
    put_bytes(exponents, end, next, has_tail ? tail : 0, room);
    put_slowly(u, t, tile, exponents, at, has_head ? head : 0, c.n, room);
  }
}

// join makes four weights from four exponents and sign_mantissa bytes, two per word.
DEVICE u32x2 join(u32 exponents, u32 sm) {
  u32 high = choose(sm, exponents >> 1, 0x80808080), low = choose(exponents << 7, sm, 0x80808080);
  return {permute(low, high, 0x5140), permute(low, high, 0x7362)};
}

DEVICE u16 join_one(u32 exponent, u32 sm) { return (sm & 0x80) << 8 | exponent << 7 | (sm & 0x7f); }

// put_some writes weights from..to-1, one by one.
DEVICE void put_some(const u8 *exponents, const u8 *sign_mantissa, u16 *out, u32 from, u32 to, u32 threads) {
  NO_UNROLL for (u32 i = from + thread_index(); i < to; i += threads) out[i] = join_one(exponents[i], sign_mantissa[i]);
}

// put_weights writes n weights from base on. exponents[0] belongs to base rounded down to a
// multiple of 16, so that every group of 16 is aligned if the buffers are. All indices count from
// there. If n is 0, base + n may be anything, but indices within exponents never wrap.
DEVICE void put_weights(const Unit &u, const u8 *exponents, u32 base, u32 n) {
  u32 skew = base % GROUP, end = skew + n;
  const u8 *sign_mantissa = u.sign_mantissa + (base - skew);
  u16 *out = u.out + (base - skew);
  if ((((u64)u.sign_mantissa | (u64)u.out) & 15) != 0) {
    put_some(exponents, sign_mantissa, out, skew, end, THREADS);
    return;
  }
  u32 first = skew + GROUP - 1 & ~(GROUP - 1), last = max(first, end & ~(GROUP - 1));
  NO_UNROLL for (u32 i = first + GROUP * thread_index(); i < last; i += GROUP * THREADS) {
    u32x4 sm = *(const u32x4 *)(sign_mantissa + i);
    u32x4 e = *(const u32x4 *)(exponents + i);
    u32x2 a = join(e.x, sm.x), b = join(e.y, sm.y), c = join(e.z, sm.z), d = join(e.w, sm.w);
    u32x4 *to = (u32x4 *)(out + i);
    to[0] = {a.x, a.y, b.x, b.y};
    to[1] = {c.x, c.y, d.x, d.y};
  }
  put_some(exponents, sign_mantissa, out, skew, min(first, end), GROUP);
  put_some(exponents, sign_mantissa, out, last, end, GROUP);
}

// tile_end returns the weight after a tile's last. It doesn't read the entry of the last tile,
// which may be missing (docs/format.md §7).
DEVICE u32 tile_end(const Unit &u, u32 tile) {
  return tile + 1 < u.n_tiles ? min(u.positions[tile + 1], u.n_elems) : u.n_elems;
}

DEVICE u32 tile_size(const Unit &u, u32 tile) {
  u32 base = u.positions[tile], end = tile_end(u, tile);
  return end > base ? end - base : 0;
}

// decode_tile is called by the whole block. exponents holds `room` bytes, a multiple of 8.
DEVICE void decode_tile(const Unit &u, const Tables &t, Shared *shared, u8 *exponents, u32 room, u32 tile) {
  u32 window = tile * THREADS + thread_index();
  Codes c = find_codes(u.luts, t, load_window(u, window), load_gap(u, window));
  Start s = start(c);
  u64 next;
  u32 at = codes_before(c.n, first_seven(s, c.n), shared, &next) + u.positions[tile] % GROUP;
  put_exponents(u, t, c, s, tile, exponents, at, room, next);
  barrier();
  u32 base = u.positions[tile];
  put_weights(u, exponents, base, min(tile_size(u, tile), room - base % GROUP));
}

// ---- Entry points ----

DEVICE Unit make_unit(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions,
                      const u8 *gaps, u16 *out, int n_luts, int n_bytes, int n_elems, u32 n_tiles) {
  return {{luts, (u32)n_luts}, stream, sign_mantissa, gaps, positions, out, (u32)n_bytes, (u32)n_elems, n_tiles};
}

// The largest power of two that is at most n, and its exponent.
DEVICE u32 log_of_two(u32 n) { return 31 - __builtin_clz(n); }
DEVICE u32 power_of_two(u32 n) { return 1u << log_of_two(n); }

// table_bits returns the index width of the largest table that fits.
DEVICE u32 table_bits(u32 room) { return min(log_of_two(room / 4), TABLE_BITS); }

// decode has the interface of the official kernel: one block of 512 threads for each 4096 bytes of
// the stream, and at least 512*4 + 4 + 2*(most weights of a chunk) bytes of shared memory. It
// builds the tables itself, as large as the shared memory allows, so in large grids one block does
// the work of up to eight. With less shared memory it does nothing.
extern "C" __global__ void __launch_bounds__(512, 3)
    decode(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions, const u8 *gaps,
           u16 *out, int n_luts, int n_bytes, int n_elems) {
  Unit u = make_unit(luts, stream, sign_mantissa, positions, gaps, out, n_luts, n_bytes, n_elems, block_count());
  u32 per_block = min(power_of_two(max(u.n_tiles / 512, 1)), MAX_TILES), first = block_index();
  if ((first & per_block - 1) != 0 || shared_size() < MIN_SHARED) return;
  u32 last = min(first + per_block, u.n_tiles), most = 0;
  NO_UNROLL for (u32 tile = first; tile < last; tile++) most = max(most, tile_size(u, tile));

  Shared *shared = (Shared *)shared_memory;
  u32 *slots = (u32 *)(shared + 1);
  u8 *lengths = (u8 *)(slots + ROW), *exponents = lengths + ROW;
  u32 room = shared_size() - sizeof(Shared) - 5 * ROW;
  u32 n_exponents = min(most, room - 128) + 32 & ~15u;  // the rest holds at least 16 entries
  Tables t = {(u32 *)(exponents + n_exponents), lengths, table_bits(room - n_exponents)};
  build(u.luts, slots, t);
  barrier();
  for (u32 tile = first; tile < last; tile++) decode_tile(u, t, shared, exponents, n_exponents, tile);
}

// build_tables builds tables for decode_tiles: 1024 words of entries, then 256 bytes of lengths. It
// needs one block of 512 threads and 1024 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(512, 1) build_tables(const u8 *luts, int n_luts, u32 *tables) {
  Tables t = {tables, (u8 *)(tables + (1u << TABLE_BITS)), TABLE_BITS};
  build({luts, (u32)n_luts}, (u32 *)shared_memory, t);
}

// Prepared is the shared memory of decode_tiles and decode_picked.
struct Prepared {
  Shared *shared;
  Tables tables;
  u8 *exponents;
};

constexpr u32 TABLES_SIZE = (4u << TABLE_BITS) + ROW, PREPARED_SIZE = sizeof(Shared) + TABLES_SIZE;

// prepare copies tables from build_tables into shared memory. The whole block calls it. It contains
// a barrier.
DEVICE Prepared prepare(const u32x4 *tables) {
  Shared *shared = (Shared *)shared_memory;
  u32x4 *copy = (u32x4 *)(shared + 1);
  NO_UNROLL for (u32 i = thread_index(); i < TABLES_SIZE / 16; i += THREADS) copy[i] = tables[i];
  Tables t = {(u32 *)copy, (u8 *)((u32 *)copy + (1u << TABLE_BITS)), TABLE_BITS};
  barrier();
  return {shared, t, (u8 *)copy + TABLES_SIZE};
}

DEVICE void decode_tile(const Unit &u, const Prepared &p, u32 tile) {
  decode_tile(u, p.tables, p.shared, p.exponents, shared_size() - PREPARED_SIZE & ~7u, tile);
}

// decode_tiles is decode with tables from build_tables, 16-byte aligned. Any number of blocks
// decode n_tiles tiles. It needs 256 + 4352 + (most weights of a chunk + 32) bytes of shared
// memory.
extern "C" __global__ void __launch_bounds__(512, 4)
    decode_tiles(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions, const u8 *gaps,
                 u16 *out, int n_luts, int n_bytes, int n_elems, const u32x4 *tables, int n_tiles) {
  Unit u = make_unit(luts, stream, sign_mantissa, positions, gaps, out, n_luts, n_bytes, n_elems, n_tiles);
  if (shared_size() < PREPARED_SIZE + 32) return;
  Prepared p = prepare(tables);
  for (u32 tile = block_index(); tile < u.n_tiles; tile += block_count()) decode_tile(u, p, tile);
}

// is_picked reports whether a tile has weights of a picked owner. owners has two numbers for each
// tile, of 16 bits, and picked a byte for each number.
DEVICE bool is_picked(const u32 *owners, const u8 *picked, u32 tile) {
  u32 both = owners[tile];
  return (picked[both & 0xffff] | picked[both >> 16]) != 0;
}

// find_picked returns which of 32 tiles are picked: number i stands for tile first + i*block_count().
// If none is, it goes on with the next 32; after the last tile, it returns 0.
DEVICE u32 find_picked(const u32 *owners, const u8 *picked, u32 n_tiles, u32 &first) {
  NO_UNROLL for (; first < n_tiles; first += 32 * block_count()) {
    u32 tile = first + thread_index() % 32 * block_count();
    u32 found = ballot(tile < n_tiles && is_picked(owners, picked, tile));
    if (found != 0) return found;
  }
  return 0;
}

// decode_picked is decode_tiles for a mixture of experts: it decodes only the tiles that have
// weights of a picked owner, and leaves the output of the others as it is. All warps of a block find
// the block's picked tiles, 32 at a time, so they need no barrier for it, and a block without any
// ends at once.
extern "C" __global__ void __launch_bounds__(512, 4)
    decode_picked(const u8 *luts, const u8 *stream, const u8 *sign_mantissa, const u32 *positions, const u8 *gaps,
                  u16 *out, int n_luts, int n_bytes, int n_elems, const u32x4 *tables, int n_tiles, const u32 *owners,
                  const u8 *picked) {
  Unit u = make_unit(luts, stream, sign_mantissa, positions, gaps, out, n_luts, n_bytes, n_elems, n_tiles);
  if (shared_size() < PREPARED_SIZE + 32) return;
  u32 first = block_index(), left = find_picked(owners, picked, u.n_tiles, first);
  if (left == 0) return;
  Prepared p = prepare(tables);
  for (; left != 0; first += 32 * block_count(), left = find_picked(owners, picked, u.n_tiles, first))
    NO_UNROLL for (; left != 0; left &= left - 1) decode_tile(u, p, first + lowest(left) * block_count());
}
