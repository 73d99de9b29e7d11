package budget

import "github.com/df11-convert/df11-convert/internal/spans"

// Places between the stages of a conversion.
const (
	// OutputsAhead is how many outputs whose source bytes are complete may wait for the converter,
	// so that the fetcher goes on while a large output is converted.
	OutputsAhead = 4
	// Finalizers is how many compared files wait for their hashes and the disk side by side.
	Finalizers = 3
	// spoolsBeside is how many spools are full at once: those of outputs that wait, of one that is
	// encoded, and of one that is compared.
	spoolsBeside = OutputsAhead + 2
	// filesBeside is how many finished files there are besides those that are uploaded: one is
	// written, one is compared, some are hashed, and one waits for an upload.
	filesBeside = Finalizers + 3
)

// arrival is a moment at which an output gets its spool, the last byte of it, or both.
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

// Peak is the most bytes that the unfinished spools of some outputs hold at once. Finished spools
// count as given back, so that a budget of this size can make the fetcher wait but never blocks it.
func (d *Demand) Peak(of func(*spans.Output) bool) (peak int64) {
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
