package ptx

// findMeetings finds, for every branch, its immediate postdominator: the first instruction through which all
// ways from the branch lead. That is where hardware brings parted lanes together. The end of the
// kernel counts as an instruction.
func (k *Kernel) findMeetings() {
	end := len(k.code)
	meet := make([]int, end+1) // -1: not known yet
	order, number := k.backwards()
	for i := range meet {
		meet[i] = -1
	}
	meet[end] = end
	for changed := true; changed; {
		changed = false
		for _, i := range order {
			m := -1
			for _, s := range k.successors(i) {
				switch {
				case meet[s] < 0:
				case m < 0:
					m = s
				default:
					m = common(meet, number, m, s)
				}
			}
			if m != meet[i] {
				meet[i], changed = m, true
			}
		}
	}
	for i := range k.code {
		if k.code[i].meet = meet[i]; meet[i] < 0 { // an endless loop
			k.code[i].meet = end
		}
	}
}

// common walks up from two instructions to where their ways join.
func common(meet, number []int, a, b int) int {
	for a != b {
		for number[a] > number[b] {
			a = meet[a]
		}
		for number[b] > number[a] {
			b = meet[b]
		}
	}
	return a
}

// successors are the instructions that may follow instruction i.
func (k *Kernel) successors(i int) []int {
	in := &k.code[i]
	switch {
	case in.kind == kindBranch && in.guard < 0:
		return []int{in.target}
	case in.kind == kindBranch:
		return []int{in.target, i + 1}
	case in.kind == kindReturn && in.guard < 0:
		return []int{len(k.code)}
	}
	return []int{i + 1}
}

// backwards orders the instructions from the end, each behind one that may follow it (reverse
// postorder of the reversed graph), and numbers them so. The end has number 0.
func (k *Kernel) backwards() (order, number []int) {
	end := len(k.code)
	before := make([][]int, end+1)
	for i := range k.code {
		for _, s := range k.successors(i) {
			before[s] = append(before[s], i)
		}
	}
	number = make([]int, end+1)
	seen := make([]bool, end+1)
	type frame struct{ node, next int }
	stack := []frame{{end, 0}}
	seen[end] = true
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.next == len(before[f.node]) {
			order = append(order, f.node)
			stack = stack[:len(stack)-1]
			continue
		}
		p := before[f.node][f.next]
		f.next++
		if !seen[p] {
			seen[p] = true
			stack = append(stack, frame{p, 0})
		}
	}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	for n, i := range order {
		number[i] = n
	}
	return order[1:], number // without the end
}
