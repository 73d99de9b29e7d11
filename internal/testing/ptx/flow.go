package ptx

import (
	"math/big"
	"math/bits"
)

func buildBranch(_ *compiler, in *instr, _, ops []string) { in.flow, in.label = flowBranch, ops[0] }

func buildReturn(_ *compiler, in *instr, _, _ []string) { in.flow = flowReturn }

// buildBarrier supports only the barrier of the whole block.
func buildBarrier(_ *compiler, in *instr, mods, ops []string) {
	if mods[0] != "sync" || len(ops) != 1 || ops[0] != "0" {
		unsupported("other barrier than bar.sync 0")
	}
	in.flow = flowBarrier
}

// findMeetings finds where hardware brings split lanes together again: at the immediate
// postdominator of the branch, the first instruction that all paths from the branch reach. The end
// of the kernel counts as an instruction.
func (k *Kernel) findMeetings() {
	later := k.postdominators()
	size := make([]int, len(later))
	for i, set := range later {
		for _, word := range set.Bits() {
			size[i] += bits.OnesCount(uint(word))
		}
	}
	for i := range k.code {
		if k.code[i].flow != flowBranch {
			continue
		}
		meet := len(k.code)
		for j := range later {
			// the first one has all others after it
			if j != i && later[i].Bit(j) == 1 && size[j] > size[meet] {
				meet = j
			}
		}
		k.code[i].meet = meet
	}
}

// postdominators returns for every instruction those that all paths from it to the end pass,
// including itself. It starts with all instructions for each and removes some until nothing
// changes.
func (k *Kernel) postdominators() []*big.Int {
	end := len(k.code)
	all := new(big.Int).Lsh(big.NewInt(1), uint(end)+1)
	all.Sub(all, big.NewInt(1))
	sets := make([]*big.Int, end+1)
	for i := range end {
		sets[i] = all
	}
	sets[end] = new(big.Int).SetBit(new(big.Int), end, 1)
	for changed := true; changed; {
		changed = false
		for i := end - 1; i >= 0; i-- {
			set := all
			for _, next := range k.successors(i) {
				set = new(big.Int).And(set, sets[next])
			}
			set = new(big.Int).SetBit(set, i, 1)
			if set.Cmp(sets[i]) != 0 {
				sets[i], changed = set, true
			}
		}
	}
	return sets
}

// successors returns the instructions that may follow instruction i.
func (k *Kernel) successors(i int) []int {
	in := &k.code[i]
	switch {
	case in.flow == flowBranch && len(in.guards) == 0:
		return []int{in.target}
	case in.flow == flowBranch:
		return []int{in.target, i + 1}
	case in.flow == flowReturn && len(in.guards) == 0:
		return []int{len(k.code)}
	}
	return []int{i + 1}
}
