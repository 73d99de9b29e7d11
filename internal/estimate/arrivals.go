package estimate

import (
	"iter"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Places between the stages of a conversion.
const (
	// OutputsAhead is how many outputs whose source bytes are complete may wait for the converter, so that the fetcher goes
	// on while a large output is converted.
	OutputsAhead = 4
	// Finalizers is how many verified files wait for their hashes and the disk side by side.
	Finalizers = 3
	// filesBeside is how many finished files are elsewhere between converter and uploads: one is written, one is checked, and one
	// waits for an upload.
	filesBeside = 3
)

// bytesOf counts bytes of an output: of its file, or of its spool as far as that is on the disk or in memory.
type bytesOf func(*spans.Output) int64

// arrival is a moment at which an output gets its spool, the last byte of it, or both.
type arrival struct {
	output      *spans.Output
	begin, last bool
}

// inFileOrder lists the arrivals of source files that are streamed one after the other. Outputs in open have their spool from
// the beginning.
func inFileOrder(segments [][]spans.Segment, open ...*spans.Output) []arrival {
	var arrivals []arrival
	left := map[*spans.Output]int64{}
	for _, o := range open {
		left[o] = o.Size
	}
	for _, file := range segments {
		for _, s := range file {
			for _, d := range s.To {
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

// byOutput lists the arrivals of outputs that are fetched one after the other.
func byOutput(outputs []*spans.Output) []arrival {
	var arrivals []arrival
	for _, o := range outputs {
		arrivals = append(arrivals, arrival{o, true, true})
	}
	return arrivals
}

// PeakSpool is the most bytes that unfinished spools hold at once while source files are streamed in order, of the outputs
// that are spooled. Finished spools count as given back, so that a budget of this size can make the fetcher wait but never
// blocks it. Outputs in open have their spool from the beginning.
func PeakSpool(segments [][]spans.Segment, spooled func(*spans.Output) bool, open ...*spans.Output) int64 {
	var held int64
	for _, o := range open {
		held += o.Size
	}
	return peakSpools(inFileOrder(segments, open...), spooled, held)
}

// peakSpools is PeakSpool for given arrivals; held is what spools take before the first.
func peakSpools(arrivals []arrival, spooled func(*spans.Output) bool, held int64) (peak int64) {
	for _, a := range arrivals {
		if !spooled(a.output) {
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

// peakDisk is the most that spools and finished files take of the disk together while uploads are slower than everything else:
// each finished file then waits for the files before it, and the fetcher runs ahead. spool and size count the bytes of an
// output's spool and of its file.
func peakDisk(arrivals []arrival, spool, size bytesOf, limits Shares, uploads int) (peak int64) {
	var made []int64
	for o, held := range heldSpools(arrivals, spool, limits.Spools) {
		made = append(made, size(o))
		peak = max(peak, held+waiting(made, limits.Outputs, uploads+Finalizers+filesBeside))
	}
	return peak
}

// heldSpools lists the outputs in the order in which they become complete. With each output it gives what all spools hold when
// it is encoded while the one before is checked, and the fetcher has gone as far ahead as it can. spool counts an output's
// bytes; a limit of 0 is none.
func heldSpools(arrivals []arrival, spool bytesOf, limit int64) iter.Seq2[*spans.Output, int64] {
	return func(yield func(*spans.Output, int64) bool) {
		var held, checked int64 // by outputs that have begun and are not checked; by the one before
		for i, a := range arrivals {
			if a.begin {
				held += spool(a.output)
			}
			if !a.last {
				continue
			}
			if limit > 0 && held > limit {
				held, checked = held-checked, 0 // the fetcher had to wait for its spool
			}
			if !yield(a.output, held+ahead(arrivals[i+1:], spool, held, limit)) {
				return
			}
			held -= checked
			checked = spool(a.output)
		}
	}
}

// ahead is what the fetcher adds to the held spools until it must wait: for room within the limit, or for a place among the
// complete outputs.
func ahead(arrivals []arrival, spool bytesOf, held, limit int64) (more int64) {
	complete := 0
	for _, a := range arrivals {
		if a.begin {
			if limit > 0 && held+more+spool(a.output) > limit {
				break
			}
			more += spool(a.output)
		}
		if a.last {
			if complete++; complete > OutputsAhead {
				break
			}
		}
	}
	return more
}

// waiting adds up the sizes of the newest n files, or of as many as fit within the limit; a limit of 0 is none.
func waiting(sizes []int64, limit int64, n int) (total int64) {
	for i := len(sizes) - 1; i >= max(0, len(sizes)-n); i-- {
		if limit > 0 && total > 0 && total+sizes[i] > limit {
			break
		}
		total += sizes[i]
	}
	return total
}
