package budget

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Carried files are on the disk a few at a time, as many as it holds.
func TestPeakCopies(t *testing.T) {
	p := &plan.Plan{Carried: plan.Carried{Copied: []plan.File{{Size: 3}, {Size: 10}}, Components: []plan.File{{Size: 50}, {Size: 40}}}}
	for _, tc := range []struct {
		limit int64
		n     int
		want  int64
	}{{0, 1, 50}, {0, 2, 90}, {0, 9, 103}, {60, 2, 60}} {
		if got := PeakCopies(p, tc.limit, tc.n); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// Spools and finished files each get half of the spare disk. If the disk is too small, spools are
// in memory. If that doesn't suffice either, the run is refused. The largest output may take 5.5
// MiB.
func TestDivide(t *testing.T) {
	for _, tc := range []struct {
		name         string
		disk, memory int64
		want         Shares
		inMemory     []int64
	}{
		{"no bound", 0, 0, Shares{}, nil},
		{"room for all", 20 * mb, 0, Shares{Spools: 10*mb + 3*quarter, Outputs: 9*mb + quarter}, nil},
		{"the small in memory", 20 * mb, 3 * mb, Shares{Spools: 10*mb + quarter, Outputs: 9*mb + 3*quarter, Memory: 3 * mb}, []int64{mb}},
		{"all in memory", 6 * mb, 8 * mb, Shares{Spools: 1, Outputs: 6 * mb, Memory: 8 * mb}, []int64{4 * mb, 2 * mb, mb}},
		{"the large in memory", 9 * mb, 4 * mb, Shares{Spools: 3*mb + quarter, Outputs: 5*mb + 3*quarter, Memory: 4 * mb}, []int64{4 * mb}},
	} {
		outputs, segments := nested(4*mb, 2*mb, mb)
		got, err := NewDemand(outputs, segments, false, true, tc.memory).Divide(tc.disk)
		var inMemory []int64
		for _, o := range outputs {
			if got.InMemory[o] {
				inMemory = append(inMemory, o.Size)
			}
		}
		if !slices.Equal(inMemory, tc.inMemory) {
			t.Errorf("%s: %d in memory", tc.name, inMemory)
		}
		if got.InMemory = nil; !reflect.DeepEqual(got, tc.want) || err != nil {
			t.Errorf("%s: %+v %v, want %+v", tc.name, got, err, tc.want)
		}
	}
	outputs, segments := nested(4*mb, 2*mb, mb)
	outputs[2].Units = nil
	if got, err := NewDemand(outputs, segments, false, true, 3*mb).Divide(20 * mb); err != nil || got.InMemory[outputs[2]] {
		t.Errorf("an output without a unit is open until the end, but a kill loses its spool: %+v %v", got, err)
	}
	// what an earlier run has begun on the disk stays there, and takes its place from the start
	d := NewDemand(outputs, segments, false, true, 3*mb).Continue(outputs[:1])
	if got, err := d.Divide(9*mb + 2*quarter); err != nil || got.InMemory[outputs[0]] || !got.InMemory[outputs[1]] {
		t.Errorf("a spool of an earlier run goes to memory: %+v %v", got, err)
	}
	if got, err := d.Divide(9*mb + 2*quarter - 1); err == nil {
		t.Errorf("a disk that doesn't hold it is divided: %+v", got)
	}
	// all spools are open at once
	for memory, least := range map[int64]int64{0: 12*mb + 2*quarter, 4 * mb: 8*mb + 2*quarter} {
		tooSmall := (*DiskError)(nil)
		if _, err := NewDemand(outputs, segments, false, true, memory).Divide(8 * mb); !errors.As(err, &tooSmall) || tooSmall.Need != least {
			t.Error(err)
		}
	}
}

// Nested outputs are open at once; outputs that begin one after the other aren't.
func TestPeak(t *testing.T) {
	outputs, segments := nested(4, 2, 1)
	_, sorted := inTurn(4, 2, 1)
	last := func(o *spans.Output) bool { return o == outputs[2] }
	d := NewDemand(outputs, segments, false, false, 0)
	if got := []int64{d.peak(all), d.peak(last), NewDemand(nil, sorted, false, false, 0).peak(all)}; !slices.Equal(got, []int64{7, 1, 4}) {
		t.Errorf("%d", got)
	}
}

const (
	mb      = 1 << 20
	quarter = mb / 4
)

// nested returns outputs of these sizes. Each begins inside the one before it, so all are open at
// once.
func nested(sizes ...int64) ([]*spans.Output, [][]spans.Segment) {
	var outputs []*spans.Output
	var first, last []spans.Segment
	for _, size := range sizes {
		o := &spans.Output{Size: size, Units: []*spans.Unit{{}}}
		outputs = append(outputs, o)
		first = append(first, segment(o, size/2))
		last = append(last, segment(o, size-size/2))
	}
	return outputs, [][]spans.Segment{first, last}
}

// inTurn returns outputs of these sizes that begin one after the other.
func inTurn(sizes ...int64) ([]*spans.Output, [][]spans.Segment) {
	outputs, _ := nested(sizes...)
	var file []spans.Segment
	for _, o := range outputs {
		file = append(file, segment(o, o.Size))
	}
	return outputs, [][]spans.Segment{file}
}

func segment(o *spans.Output, n int64) spans.Segment {
	return spans.Segment{End: n, To: []spans.Delivery{{Output: o, Tensor: spans.Tensor{Tensor: plan.Tensor{Length: n}}}}}
}

// everyChoice is what choices listed before it searched: each size, one after the other.
func everyChoice(d *Demand) []choice {
	sizes := []int64{0}
	for _, o := range d.spooled {
		sizes = append(sizes, o.Size)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	small := int64(0)
	for _, size := range sizes {
		if d.peak(func(o *spans.Output) bool { return o.Size <= size }) > d.memory/2 {
			break
		}
		small = size
	}
	list := []choice{func(o *spans.Output) bool { return o.Size <= small && len(o.Units) > 0 }}
	for _, size := range sizes {
		list = append(list, func(o *spans.Output) bool { return o.Size > size })
	}
	return list
}

// randomDemand is of outputs that begin and end in any order.
func randomDemand(r *rand.Rand, n int, most int64) *Demand {
	d := &Demand{memory: r.Int64N(2 * most), outMin: r.Int64N(most), begun: r.Int64N(2) * r.Int64N(most)}
	var open []*spans.Output
	for len(d.spooled) < n || len(open) > 0 {
		if len(d.spooled) < n && (len(open) == 0 || r.IntN(2) == 0) {
			o := &spans.Output{Size: r.Int64N(most)}
			if r.IntN(4) > 0 {
				o.Units = make([]*spans.Unit, 1)
			}
			d.spooled = append(d.spooled, o)
			last := r.IntN(4) == 0
			if d.arrivals = append(d.arrivals, arrival{o, true, last}); !last {
				open = append(open, o)
			}
			continue
		}
		i := r.IntN(len(open))
		d.arrivals = append(d.arrivals, arrival{open[i], false, true})
		open = slices.Delete(open, i, i+1)
	}
	return d
}

// TestSearchFindsWhatEveryChoiceDoes checks that the choices that are searched for give the same shares
// and the same least disk as looking at every size.
func TestSearchFindsWhatEveryChoiceDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	divided, refused := 0, 0
	for range 20_000 {
		d := randomDemand(r, r.IntN(12), []int64{4, 20, 1000}[r.IntN(3)])
		disk := r.Int64N(3000) * r.Int64N(2)
		least, want := int64(math.MaxInt64), (*Shares)(nil)
		for _, inMemory := range everyChoice(d) {
			if d.peak(inMemory) > d.memory {
				continue
			}
			onDisk := d.onDisk(inMemory)
			least = min(least, onDisk+d.outMin)
			if want == nil && (disk == 0 || onDisk+d.outMin <= disk) {
				s := d.share(disk, onDisk, inMemory)
				want = &s
			}
		}
		if got := d.Least(); got != least {
			t.Fatalf("%+v: least %d, not %d", d, got, least)
		}
		switch got, err := d.Divide(disk); {
		case want == nil:
			if e, ok := errors.AsType[*DiskError](err); !ok || e.Need != least || e.Have != disk {
				t.Fatalf("%+v of %d: %v", d, disk, err)
			}
			refused++
		case err != nil || !reflect.DeepEqual(got, *want):
			t.Fatalf("%+v of %d: %+v, not %+v, %v", d, disk, got, *want, err)
		default:
			divided++
		}
	}
	if min(divided, refused) < 1000 {
		t.Errorf("%d divided, %d refused: the demands are too much alike", divided, refused)
	}
}
