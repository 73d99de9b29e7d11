package ptx

import (
	"fmt"
	"strings"
)

// access is a load or store of a register or a vector of registers.
type access struct {
	store  bool
	shared bool   // in shared memory instead of global memory
	size   int    // bytes of an element
	base   int    // row of the address
	offset uint64 // from the base
	rows   []int  // rows of the elements
}

// buildLoad builds an instruction that reads memory or a parameter of the kernel.
func buildLoad(c *compiler, in *instr, mods, ops []string) {
	if mods[0] == "param" {
		c.compute(in, same, lastType(mods), ops)
		return
	}
	c.access(in, &access{}, mods, ops[0], ops[1])
}

func buildStore(c *compiler, in *instr, mods, ops []string) {
	c.access(in, &access{store: true}, mods, ops[1], ops[0])
}

// access sets a from the modifiers and operands of a load or a store. vector is "{%r1,%r2}" or a
// single register; address is "[base]" or "[base+offset]".
func (c *compiler) access(in *instr, a *access, mods []string, vector, address string) {
	a.modifiers(mods)
	for _, name := range strings.Split(strings.Trim(vector, "{}"), ",") {
		if !a.store {
			c.register(name)
		}
		a.rows = append(a.rows, c.source(name, types["b64"]))
	}
	base, offset, hasOffset := strings.Cut(strings.Trim(address, "[]"), "+")
	if hasOffset {
		a.offset = parseNumber(offset)
	}
	a.base = c.source(base, types["u64"])
	in.do = a.run
}

// modifiers reads the modifiers of a load or a store.
func (a *access) modifiers(mods []string) {
	a.size = lastType(mods).bits / 8
	global := false
	for _, m := range mods[:len(mods)-1] {
		switch m {
		case "global":
			global = true
		case "shared":
			a.shared = true
		case "volatile", "nc", "v2", "v4": // the operands show whether it's a vector
		default:
			unsupported("modifier %q", m)
		}
	}
	if global == a.shared {
		unsupported("generic address")
	}
}

func (a *access) run(w *warp, mask uint32) (int, error) {
	values := make([]uint64, len(a.rows))
	for lane := range lanes(mask) {
		address, thread := w.rows[a.base][lane]+a.offset, w.first+lane
		at, err := &w.block.shared, error(nil)
		if !a.shared {
			at, err = w.block.memory.find(address)
			thread += w.block.index * w.block.launch.Block
		}
		switch {
		case err != nil:
		case a.store:
			for i, row := range a.rows {
				values[i] = w.rows[row][lane]
			}
			err = at.store(address, a.size, values, thread)
		default:
			err = at.load(address, a.size, values, thread)
			for i, row := range a.rows {
				w.rows[row][lane] = values[i]
			}
		}
		if err != nil {
			return lane, err
		}
	}
	return 0, nil
}

// buildShuffle builds shfl.sync.mode.b32 d, a, b, c, members, or d|p, where p says whether the lane
// to read from exists.
func buildShuffle(c *compiler, in *instr, mods, ops []string) {
	from := shuffles[mods[1]]
	if mods[0] != "sync" || from == nil {
		unsupported("shfl.%s", strings.Join(mods, "."))
	}
	into, there, hasThere := strings.Cut(ops[0], "|")
	dst, p := c.register(into), -1
	if hasThere {
		p = c.register(there)
	}
	src := c.sources(ops[1:], types["b32"])
	in.do = func(w *warp, mask uint32) (int, error) {
		values := w.rows[src[0]] // a copy: dst may be the same row
		for lane := range lanes(mask) {
			if members := uint32(w.rows[src[3]][lane]); members&^mask != 0 {
				return lane, fmt.Errorf("shuffle for lanes %08x reached by %08x", members, mask)
			}
			source, ok := from(lane, int(w.rows[src[1]][lane])&31, int(w.rows[src[2]][lane]))
			if !ok {
				source = lane
			}
			w.rows[dst][lane] = values[source]
			if p >= 0 {
				w.rows[p][lane] = 0
				if ok {
					w.rows[p][lane] = 1
				}
			}
		}
		return 0, nil
	}
}

// shuffles return the lane to read from, by the operands b and c, and whether it's in the segment.
// If not, a lane reads itself.
var shuffles = map[string]func(lane, b, c int) (from int, ok bool){
	"down": func(lane, b, c int) (int, bool) { return lane + b, lane+b <= lastLane(lane, c) },
	"idx": func(lane, b, c int) (int, bool) {
		segment := c >> 8 & 31
		from := lane&segment | b&^segment
		return from, from <= lastLane(lane, c)
	},
}

// lastLane returns the last lane of a segment that a shuffle reads, in the shuffle's direction.
func lastLane(lane, c int) int {
	segment := c >> 8 & 31
	return lane&segment | c&31&^segment
}

// buildBallot builds vote.sync.ballot.b32 d, p, members: the lanes for which p holds.
func buildBallot(c *compiler, in *instr, mods, ops []string) {
	if len(mods) < 2 || mods[0] != "sync" || mods[1] != "ballot" {
		unsupported("vote.%s", strings.Join(mods, "."))
	}
	dst, p, members := c.register(ops[0]), c.sources(ops[1:2], types["pred"])[0], c.sources(ops[2:], types["b32"])[0]
	in.do = func(w *warp, mask uint32) (int, error) {
		votes := uint64(0)
		for lane := range lanes(mask) {
			if asked := uint32(w.rows[members][lane]); asked&^mask != 0 {
				return lane, fmt.Errorf("ballot for lanes %08x reached by %08x", asked, mask)
			}
			votes |= w.rows[p][lane] << lane
		}
		for lane := range lanes(mask) {
			w.rows[dst][lane] = votes
		}
		return 0, nil
	}
}
