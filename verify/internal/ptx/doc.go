// Package ptx runs the PTX text of a GPU kernel on the CPU, instruction by instruction, and reports what a GPU would not.
// It is a tool for tests: it knows only the instructions that integer kernels use, and says nothing about speed.
//
// [Parse] reads a module, [Kernel.Run] launches one of its entry points over a [Memory]. Threads run
// in warps of 32 in lockstep; where a warp's threads part, those at the lowest instruction go first,
// which brings them together again behind every branch. Beyond the results there are checks:
//
//   - every access lies inside one buffer, and is aligned to its size;
//   - shared memory and registers start as noise, so that nothing works by luck;
//   - between two barriers no byte of shared memory is written by one thread and touched by another,
//     and no byte of global memory during the whole launch;
//   - a barrier is reached by all threads of the block, a shuffle by all threads it names;
//   - a block that runs for too many steps is stopped.
//
// Each is a *[Fault] with the line, the block and the thread. What is not checked is weak memory
// ordering, and what an assembler makes of the text.
package ptx
