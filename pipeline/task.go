package pipeline

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A task is one output file in the making. Its source bytes are addressed by one running offset: the weights of every
// unit in encoding order, then the tensors that are copied, then the shadows.
type task struct {
	path     string
	metadata []safetensors.MetadataEntry
	units    []*taskUnit
	plain    []placed
	shadows  []shadow
	size     int64 // bytes in the spool

	inMemory bool      // the spool is to be memory
	once     sync.Once // begin
	beginErr error
	spool    spool
	left     atomic.Int64 // bytes that have not arrived
	restored bool         // an earlier run has begun the spool
	holds    holdings

	mu       sync.Mutex
	prefixes []Prefix
}

// taskUnit is one unit inside a task.
type taskUnit struct {
	plan.Unit
	at      int64   // spool offset of the first weight
	sizes   []int64 // elements of each tensor
	counter *encoder.Counter
}

// placed is a copied tensor and its place in the spool.
type placed struct {
	plan.Tensor
	at int64
}

// shadow is a tensor that must equal a copied one and is then not stored: an alias (docs/format.md §15).
type shadow struct {
	placed
	of placed
}

// spoolBytes is the size of a tensor in the spool: two bytes for each weight, also for F32 that is narrowed on arrival.
func spoolBytes(t plan.Tensor) int64 {
	if t.ExactF32 {
		return t.Length / 2
	}
	return t.Length
}

// storedDType is the dtype that a copied tensor has in the output.
func storedDType(t plan.Tensor) safetensors.DType {
	if t.ExactF32 {
		return "BF16"
	}
	return t.DType
}

// narrows tells whether the task turns F32 into BF16, so that its source file can't be its spool.
func (t *task) narrows() (yes bool) {
	t.eachTensor(func(x plan.Tensor, _ int64, _ *taskUnit) { yes = yes || x.ExactF32 })
	return yes
}

// newTasks lays out one task for each output file of the plan, in the plan's order.
func newTasks(p *plan.Plan) []*task {
	var tasks []*task
	for _, f := range p.OutputFiles {
		t := &task{path: f.Path, metadata: f.Metadata}
		plain := f.Plain
		for _, i := range f.Units {
			t.addUnit(p.Units[i])
			plain = append(slices.Clone(p.Units[i].Siblings), plain...)
		}
		for _, x := range plain {
			t.plain = append(t.plain, placed{x, t.place(x)})
		}
		tasks = append(tasks, t)
	}
	for _, a := range p.Aliases {
		addShadow(tasks, a)
	}
	for _, t := range tasks {
		t.left.Store(t.size)
	}
	return tasks
}

func (t *task) addUnit(u plan.Unit) {
	tu := &taskUnit{Unit: u, at: t.size}
	for _, a := range u.Attrs {
		tu.sizes = append(tu.sizes, spoolBytes(a)/2)
		t.place(a)
	}
	t.units = append(t.units, tu)
}

// place reserves room for a tensor and gives its offset.
func (t *task) place(x plan.Tensor) int64 {
	at := t.size
	t.size += spoolBytes(x)
	return at
}

// addShadow puts an alias into the task that stores the tensor it must equal.
func addShadow(tasks []*task, a plan.Alias) {
	for _, t := range tasks {
		for _, p := range t.plain {
			if p.Name == a.Of.Name {
				t.shadows = append(t.shadows, shadow{placed{a.Tensor, t.place(a.Tensor)}, p})
				return
			}
		}
	}
}

// provable counts the bytes that pass the stages of these tasks: all but aliases, which are only compared.
func provable(tasks []*task) (n int64) {
	for _, t := range tasks {
		n += t.size
		for _, s := range t.shadows {
			n -= s.Length
		}
	}
	return n
}

// nElems counts the unit's weights.
func (u *taskUnit) nElems() int64 {
	var n int64
	for _, s := range u.sizes {
		n += s
	}
	return n
}

// A segment is a run of a source file that tasks want.
type segment struct {
	off, end int64
	dst      []delivery
}

// from is the offset of the first byte that d still needs.
func (s segment) from(d delivery) int64 { return s.at(d, held(d.task, d.at)) }

// at is where in the file a delivery's n-th byte in the spool comes from.
func (s segment) at(d delivery, n int64) int64 {
	if d.narrow {
		n *= 2
	}
	return s.off + n
}

// delivery says where a segment's bytes go.
type delivery struct {
	task   *task
	at     int64     // spool offset
	unit   *taskUnit // nil for a copied tensor
	narrow bool      // F32 to BF16
	name   string    // of the tensor in the source
	last   bool      // the task wants nothing behind it in this file
}

// segments lists for each of n source files what is wanted from it, in file order.
func segments(tasks []*task, n int) [][]segment {
	files := make([]map[int64]*segment, n)
	for i := range files {
		files[i] = map[int64]*segment{}
	}
	for _, t := range tasks {
		t.eachTensor(func(x plan.Tensor, at int64, u *taskUnit) {
			if x.Length == 0 {
				return
			}
			s := files[x.File][x.Offset]
			if s == nil {
				s = &segment{off: x.Offset, end: x.Offset + x.Length}
				files[x.File][x.Offset] = s
			}
			s.dst = append(s.dst, delivery{task: t, at: at, unit: u, narrow: x.ExactF32, name: x.Source})
		})
	}
	out := make([][]segment, n)
	for i, m := range files {
		for _, s := range m {
			out[i] = append(out[i], *s)
		}
		slices.SortFunc(out[i], func(a, b segment) int { return cmp.Compare(a.off, b.off) })
		markLast(out[i])
	}
	return out
}

// eachTensor calls fn for every source tensor of the task with its place in the spool.
func (t *task) eachTensor(fn func(x plan.Tensor, at int64, u *taskUnit)) {
	for _, u := range t.units {
		at := u.at
		for _, a := range u.Attrs {
			fn(a, at, u)
			at += spoolBytes(a)
		}
	}
	for _, p := range t.plain {
		fn(p.Tensor, p.at, nil)
	}
	for _, s := range t.shadows {
		fn(s.Tensor, s.at, nil)
	}
}

// markLast marks each task's last delivery of a file.
func markLast(segs []segment) {
	seen := map[*task]bool{}
	for i := len(segs) - 1; i >= 0; i-- {
		for j := range segs[i].dst {
			d := &segs[i].dst[j]
			d.last = !seen[d.task]
			seen[d.task] = true
		}
	}
}
