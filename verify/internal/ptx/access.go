package ptx

import (
	"errors"
	"fmt"
	"slices"
)

// access reads the modifiers of a load or a store.
func (in *instr) access(mods []string) (t typ, isParam bool, err error) {
	if t, err = lastType(mods); err != nil {
		return t, false, err
	}
	in.size = t.bits / 8
	for _, m := range mods[:len(mods)-1] {
		switch m {
		case "param":
			isParam = true
		case "global":
			in.space = spaceGlobal
		case "shared":
			in.space = spaceShared
		case "volatile", "nc", "v2", "v4": // vectors show in the operands
		default:
			return t, false, fmt.Errorf("modifier %q", m)
		}
	}
	if !isParam && !slices.Contains(mods, "global") && !slices.Contains(mods, "shared") {
		return t, false, errors.New("generic addresses are not supported")
	}
	return t, isParam, nil
}

func buildLoad(c *compiler, in *instr, mods []string, ops []operand) error {
	t, isParam, err := in.access(mods)
	if err != nil || len(ops) != 2 {
		return errors.Join(err, errors.New("load"))
	}
	if isParam {
		return c.loadParam(in, ops)
	}
	in.kind = kindLoad
	if in.vec, err = c.vector(ops[0], t); err != nil {
		return err
	}
	return c.address(in, ops[1])
}

// loadParam makes a parameter a special register.
func (c *compiler) loadParam(in *instr, ops []operand) (err error) {
	w := ops[1].words
	if len(w) != 3 {
		return errors.New("only whole parameters are supported")
	}
	for i, p := range c.kernel.params {
		if p.name == w[1] {
			in.kind, in.eval = kindALU, func(a, _, _ uint64) uint64 { return a }
			in.a = c.specialRow(special{param: i})
			in.dst, err = c.dest(ops[0])
			return err
		}
	}
	return fmt.Errorf("parameter %q", w[1])
}

func buildStore(c *compiler, in *instr, mods []string, ops []operand) error {
	t, isParam, err := in.access(mods)
	if err != nil || isParam || len(ops) != 2 {
		return errors.Join(err, errors.New("store"))
	}
	in.kind = kindStore
	if in.vec, err = c.vector(ops[1], t); err != nil {
		return err
	}
	return c.address(in, ops[0])
}

func buildBranch(_ *compiler, in *instr, _ []string, ops []operand) error {
	if len(ops) != 1 {
		return errors.New("operands")
	}
	in.kind, in.label = kindBranch, ops[0].words[0]
	return nil
}

func buildReturn(_ *compiler, in *instr, _ []string, _ []operand) error {
	in.kind = kindReturn
	return nil
}

// buildBarrier takes the barrier of the whole block only.
func buildBarrier(_ *compiler, in *instr, mods []string, ops []operand) error {
	if len(mods) == 0 || mods[0] != "sync" || len(ops) != 1 || ops[0].words[0] != "0" {
		return errors.New("only bar.sync 0 is supported")
	}
	in.kind = kindBarrier
	return nil
}

// buildShuffle is shfl.sync.mode.b32 d, a, b, c, members.
func buildShuffle(c *compiler, in *instr, mods []string, ops []operand) (err error) {
	if len(mods) != 3 || mods[0] != "sync" || len(ops) != 5 {
		return errors.New("form of shfl is not supported")
	}
	in.kind = kindShuffle
	if in.source = shuffles[mods[1]]; in.source == nil {
		return fmt.Errorf("modifier %q", mods[1])
	}
	if in.dst, err = c.dest(ops[0]); err != nil {
		return err
	}
	return c.values(ops[1:], types["b32"], &in.a, &in.b, &in.c, &in.d)
}

// shuffles give the lane to read from; a lane outside of the segment is the reader itself.
var shuffles = map[string]func(lane, b, c int) int{
	"up": func(lane, b, c int) int {
		if j := lane - b&31; j >= shuffleBound(lane, c) {
			return j
		}
		return lane
	},
	"down": func(lane, b, c int) int {
		if j := lane + b&31; j <= shuffleBound(lane, c) {
			return j
		}
		return lane
	},
	"bfly": func(lane, b, c int) int {
		if j := lane ^ b&31; j <= shuffleBound(lane, c) {
			return j
		}
		return lane
	},
	"idx": func(lane, b, c int) int {
		segment := c >> 8 & 31
		if j := lane&segment | b&31&^segment; j <= shuffleBound(lane, c) {
			return j
		}
		return lane
	},
}

func shuffleBound(lane, c int) int {
	segment := c >> 8 & 31
	return lane&segment | c&31&^segment
}
