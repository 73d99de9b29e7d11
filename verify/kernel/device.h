// What decode.cu needs from CUDA, for clang without a CUDA toolkit. Everything here is a compiler
// builtin, except the funnel shift, which has none.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, blocks) __attribute__((launch_bounds(threads, blocks)))
#define DEVICE static inline __device__ __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

constexpr u32 ALL_LANES = 0xffffffff;

// thread_index is read again at every use. If the compiler computed from it ahead of a loop, there
// wouldn't be enough registers.
DEVICE u32 thread_index() {
  u32 n;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(n));
  return n;
}
// thread_index_again hides from ptxas that it's the same value, so nothing computed from
// thread_index() is kept for it.
DEVICE u32 thread_index_again() {
  u32 n;
  asm volatile("{\n\t.reg .b16 t;\n\t"
               "mov.u16 t, %%tid.x;\n\t"
               "cvt.u32.u16 %0, t;\n\t}"
               : "=r"(n));
  return n;
}
DEVICE u32 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_count() {
  u32 n;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(n));
  return n;
}

// shared_size returns the bytes of dynamic shared memory that the launch asked for.
DEVICE u32 shared_size() {
  u32 n;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n));
  return n;
}

DEVICE void barrier() { __syncthreads(); }
// add_from_above returns v plus the v of the lane that many lanes above, if there is such a lane.
DEVICE u32 add_from_above(u32 v, u32 lanes) {
  u32 r;
  asm volatile("{\n\t.reg .pred p;\n\t"
               "shfl.sync.down.b32 %0|p, %1, %2, 31, -1;\n\t"
               "@p add.u32 %0, %0, %1;\n\t"
               "@!p mov.u32 %0, %1;\n\t}"
               : "=&r"(r) : "r"(v), "r"(lanes));
  return r;
}
DEVICE u32 shuffle_down(u32 v, u32 lanes) { return __nvvm_shfl_sync_down_i32(ALL_LANES, v, lanes, 31); }
// ballot returns the lanes for which a condition holds, lane 0 lowest.
DEVICE u32 ballot(bool condition) { return __nvvm_vote_ballot_sync(ALL_LANES, condition); }
// lowest returns the number of the lowest bit that is set.
DEVICE u32 lowest(u32 v) { return __builtin_ctz(v); }
DEVICE u32 shuffle(u32 v, u32 lane) { return __nvvm_shfl_sync_idx_i32(ALL_LANES, v, lane, 31); }

// funnel_left returns the upper half of hi:lo shifted left by n, n = 0..32.
DEVICE u32 funnel_left(u32 hi, u32 lo, u32 n) {
  u32 r;
  asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
  return r;
}

// funnel_left_wrap is funnel_left by n % 32.
DEVICE u32 funnel_left_wrap(u32 hi, u32 lo, u32 n) {
  u32 r;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
  return r;
}

// shift_left returns v shifted left by n, n = 0..64.
DEVICE u64 shift_left(u64 v, u32 n) {
  u64 r;
  asm("shl.b64 %0, %1, %2;" : "=l"(r) : "l"(v), "r"(n));
  return r;
}

// choose returns the bits of a where mask has ones, and the bits of b elsewhere.
DEVICE u32 choose(u32 a, u32 b, u32 mask) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xe4;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
  return r;
}

// opaque returns v and hides from the compiler how it was computed. So v is computed here, once,
// and stays in a register until it's used.
DEVICE u32 opaque(u32 v) {
  asm volatile("" : "+r"(v));
  return v;
}

typedef __attribute__((address_space(3))) u8 shared_u8;

// shared_address returns p's address in shared memory.
DEVICE u32 shared_address(void *p) { return (u32)(u64)(shared_u8 *)p; }

// store_full stores the word if it has its 64 bits; then the next word starts with `more` from bit
// `rest` on. In C++, the compiler would keep every outcome in its own registers.
DEVICE void store_full(u64 &word, u32 &n_bits, u32 &address, u64 more, u32 rest) {
  asm volatile("{\n\t.reg .pred p;\n\t"
               "setp.ge.u32 p, %1, 64;\n\t"
               "@p st.shared.u64 [%2], %0;\n\t"
               "@p shr.u64 %0, %3, %4;\n\t"
               "@p add.u32 %2, %2, 8;\n\t"
               "@p sub.u32 %1, %1, 64;\n\t}"
               : "+l"(word), "+r"(n_bits), "+r"(address) : "l"(more), "r"(rest) : "memory");
}

// permute returns four of the eight bytes of hi:lo, chosen by the nibbles of selector.
DEVICE u32 permute(u32 lo, u32 hi, u32 selector) { return __nvvm_prmt(lo, hi, selector); }

DEVICE u32 min(u32 a, u32 b) { return a < b ? a : b; }
DEVICE u32 max(u32 a, u32 b) { return a > b ? a : b; }
