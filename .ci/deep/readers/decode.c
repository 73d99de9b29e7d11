// Decodes one DF11 unit on the CPU, as docs/format.md §9 describes it; takes the arguments of the official kernel.
#include <stdint.h>

enum { WINDOW_BITS = 64, WINDOWS = 512 };

// byte_at returns a byte of the coded stream; what lies behind its end reads as zero.
static unsigned byte_at(const uint8_t *codes, int64_t n_bytes, int64_t i) { return i < n_bytes ? codes[i] : 0; }

// eight returns the 8 bits of the stream that begin at a bit.
static unsigned eight(const uint8_t *codes, int64_t n_bytes, int64_t bit) {
  unsigned two = byte_at(codes, n_bytes, bit / 8) << 8 | byte_at(codes, n_bytes, bit / 8 + 1);
  return two >> (8 - bit % 8) & 0xff;
}

// decode returns the number of weights written; less than n_elems, or -1, if the arrays do not fit each other.
int64_t decode(const uint8_t *luts, const uint8_t *codes, const uint8_t *sign_mantissa, const uint32_t *positions,
               const uint8_t *gaps, uint16_t *out, int n_luts, int n_bytes, int n_elems) {
  const uint8_t *lengths = luts + (n_luts - 1) * 256;
  int64_t n_chunks = ((int64_t)n_bytes + 4095) / 4096, written = 0;
  for (int64_t chunk = 0; chunk < n_chunks; chunk++) {
    int64_t at = positions[chunk];
    for (int window = 0; window < WINDOWS; window++) {
      int64_t w = chunk * WINDOWS + window, start = w * WINDOW_BITS;
      if (start >= 8 * (int64_t)n_bytes) break;
      int64_t bit = start + (eight(gaps, (n_chunks * WINDOWS * 5 + 7) / 8, w * 5) >> 3);
      while (bit < start + WINDOW_BITS && at < n_elems) {
        unsigned symbol = luts[eight(codes, n_bytes, bit)];
        for (int level = 1; symbol >= 240; level++) {
          if (level == 4 || 256 - (int)symbol >= n_luts - 1) return -1;
          symbol = luts[(256 - symbol) * 256 + eight(codes, n_bytes, bit + 8 * level)];
        }
        if (lengths[symbol] == 0) return -1;
        bit += lengths[symbol];
        out[at] = (uint16_t)((sign_mantissa[at] & 0x80) << 8 | symbol << 7 | (sign_mantissa[at] & 0x7f));
        at++, written++;
      }
    }
    if (chunk + 1 < n_chunks && at != positions[chunk + 1]) return -1;
  }
  return written;
}
