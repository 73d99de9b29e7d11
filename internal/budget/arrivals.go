package budget

import "github.com/df11-convert/df11-convert/internal/spans"

// How many outputs may be between the stages of a conversion.
const (
	// OutputsAhead is how many outputs with complete source bytes may wait for the converter, so
	// that the fetcher can go on while a large output is converted.
	OutputsAhead = 4
	// Finalizers is how many compared files may wait for their hashes and the disk at the same
	// time.
	Finalizers = 3
	// fullSpools is how many spools may be full at once: the spools of waiting outputs, of one being
	// encoded, of one being compared, and of those that aren't recorded yet.
	fullSpools = OutputsAhead + 2 + Finalizers
	// otherFiles is how many finished files there may be in addition to those being uploaded: one
	// is being written, one compared, some hashed, and one waits for an upload.
	otherFiles = Finalizers + 3
)

// arrival is the moment when an output gets its spool, the spool's last byte, or both.
type arrival struct {
	output      *spans.Output
	begin, last bool
}

// inFileOrder lists what happens to the spools of outputs while source files are streamed one after
// the other.
func inFileOrder(segments [][]spans.Segment, local bool) (arrivals []arrival) {
	left := map[*spans.Output]int64{}
	for _, file := range segments {
		for _, s := range file {
			for _, d := range s.To {
				if !d.Output.Spooled(local) {
					continue
				}
				before, seen := left[d.Output]
				if !seen {
					before = d.Output.Size
				}
				left[d.Output] = before - d.SpoolBytes()
				if last := left[d.Output] == 0; last || !seen {
					arrivals = append(arrivals, arrival{d.Output, !seen, last})
				}
			}
		}
	}
	return arrivals
}

// choice picks outputs.
type choice func(*spans.Output) bool

// all picks every output.
func all(*spans.Output) bool { return true }

// peak returns the most bytes that the unfinished spools of some outputs hold at once. Finished
// spools don't count, because they will be freed. So a budget of this size can make the fetcher
// wait, but never forever.
func (d *Demand) peak(of func(*spans.Output) bool) (peak int64) {
	var held int64
	for _, a := range d.arrivals {
		if !of(a.output) {
			continue
		}
		if a.begin {
			held += a.output.Size
		}
		peak = max(peak, held)
		if a.last {
			held -= a.output.Size
		}
	}
	return peak
}
