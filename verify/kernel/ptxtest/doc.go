// Package ptxtest runs the PTX text of a GPU kernel on the CPU, for tests, and reports faults that a GPU would hide.
// It knows only the instructions that our kernel and the official one use, and says nothing about speed.
//
// [Parse] reads a module, [Kernel.Run] launches one of its entry points over a [Memory]. Threads run in warps of 32 in
// lockstep. Where a branch parts the threads of a warp, they run one after the other up to the first instruction that all
// of them reach, as on a GPU. The interpreter checks that
//
//   - every access lies inside one buffer and is aligned to its size;
//   - no kernel relies on what registers and shared memory hold at the start: both start as noise;
//   - no byte that one thread writes is touched by another: in shared memory between two barriers, in global memory
//     during the whole launch;
//   - all threads of a block reach each barrier, and all threads that a shuffle names reach the shuffle;
//   - no block runs for too many steps.
//
// Each violation is a *[Fault] with the line, the block and the thread. The interpreter checks neither weak memory
// ordering nor what an assembler makes of the text.
package ptxtest
