package budget

import "github.com/df11-convert/df11-convert/internal/spans"

// Places between the stages of a conversion.
const (
	// OutputsAhead is how many outputs whose source bytes are complete may wait for the converter, so that the fetcher goes
	// on while a large output is converted.
	OutputsAhead = 4
	// Finalizers is how many compared files wait for their hashes and the disk side by side.
	Finalizers = 3
	// spoolsBeside is how many spools are full at once: those of outputs that wait, of one that is encoded, and of one that is
	// compared.
	spoolsBeside = OutputsAhead + 2
	// filesBeside is how many finished files there are besides those that are uploaded: one is written, one is compared, some are
	// hashed, and one waits for an upload.
	filesBeside = Finalizers + 3
)

// choice picks outputs.
type choice func(*spans.Output) bool

// all picks every output.
func all(*spans.Output) bool { return true }

// arrival is a moment at which an output gets its spool, the last byte of it, or both.
type arrival struct {
	output      *spans.Output
	begin, last bool
}

// arrivals are what happens to spools, in order.
type arrivals []arrival

// inFileOrder lists the arrivals of source files that are streamed one after the other, for outputs that are spooled. Those in open
// have their spool from the beginning.
func inFileOrder(segments [][]spans.Segment, spooled choice, open ...*spans.Output) (a arrivals) {
	left := map[*spans.Output]int64{}
	for _, o := range open {
		left[o] = o.Size
		a = append(a, arrival{output: o, begin: true})
	}
	for _, file := range segments {
		for _, s := range file {
			for _, d := range s.To {
				if !spooled(d.Output) {
					continue
				}
				before, seen := left[d.Output]
				if !seen {
					before = d.Output.Size
				}
				left[d.Output] = before - d.SpoolBytes()
				if last := left[d.Output] == 0; last || !seen {
					a = append(a, arrival{d.Output, !seen, last})
				}
			}
		}
	}
	return a
}

// peak is the most bytes that the unfinished spools of some outputs hold at once. Finished spools count as given back, so that a
// budget of this size can make the fetcher wait but never blocks it.
func (a arrivals) peak(of choice) (peak int64) {
	var held int64
	for _, x := range a {
		if !of(x.output) {
			continue
		}
		if x.begin {
			held += x.output.Size
		}
		peak = max(peak, held)
		if x.last {
			held -= x.output.Size
		}
	}
	return peak
}

// PeakSpool is the most bytes that unfinished spools hold at once while source files are streamed in order, of the outputs
// that are spooled. Those in open have their spool from the beginning.
func PeakSpool(segments [][]spans.Segment, spooled func(*spans.Output) bool, open ...*spans.Output) int64 {
	return inFileOrder(segments, spooled, open...).peak(all)
}
