// What decode.cu needs of CUDA, for clang without a CUDA toolkit. Everything here is a compiler
// builtin, but for the funnel shift, which has none.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, blocks) __attribute__((launch_bounds(threads, blocks)))
#define DEVICE static inline __device__ __attribute__((always_inline))
#define NO_UNROLL _Pragma("clang loop unroll(disable)")

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

constexpr u32 ALL_LANES = 0xffffffff;

DEVICE u32 thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }

// Bytes of dynamic shared memory that the launch asked for.
DEVICE u32 shared_size() {
  u32 n;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n));
  return n;
}

DEVICE void barrier() { __syncthreads(); }
DEVICE u32 shuffle_up(u32 v, u32 lanes) { return __nvvm_shfl_sync_up_i32(ALL_LANES, v, lanes, 0); }
DEVICE u32 shuffle_down(u32 v, u32 lanes) { return __nvvm_shfl_sync_down_i32(ALL_LANES, v, lanes, 31); }
DEVICE u32 shuffle(u32 v, u32 lane) { return __nvvm_shfl_sync_idx_i32(ALL_LANES, v, lane, 31); }

// The upper half of hi:lo shifted left by n, n = 0..32.
DEVICE u32 funnel_left(u32 hi, u32 lo, u32 n) {
  u32 r;
  asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
  return r;
}

// Four of the eight bytes of hi:lo, chosen by the nibbles of selector.
DEVICE u32 permute(u32 lo, u32 hi, u32 selector) { return __nvvm_prmt(lo, hi, selector); }

DEVICE u32 min(u32 a, u32 b) { return a < b ? a : b; }
DEVICE u32 max(u32 a, u32 b) { return a > b ? a : b; }
