package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// LargestModule is the size in BF16 of the largest module that becomes DF11: the buffer that it is decoded into. staysBF16 says of a
// module, by its place in Units, that it does not.
func (p *Plan) LargestModule(staysBF16 func(i int) bool) (nBytes int64) {
	for i, u := range p.Units {
		if !staysBF16(i) {
			nBytes = max(nBytes, 2*u.NElems())
		}
	}
	return nBytes
}

// SizeReason says why a result has its size: "compressed layers 69.1 %, tied embedding of 311 MB stays BF16". outputBytes is the
// size of all its weights, nCoded counts those in DF11. It is "" where nearly all is compressed, so that the ratio says it all.
func (p *Plan) SizeReason(outputBytes, nCoded int64) string {
	var inUnits, tied, rest int64
	for _, u := range p.Units {
		inUnits += u.NElems()
	}
	rest = 2 * (inUnits - nCoded)
	for _, t := range p.plainTensors() {
		if p.TiedEmbeddings && len(t.Shape) == 2 && slices.Contains(tableNames, leaf(parent(t.Name))) {
			tied += t.SpoolBytes()
		} else {
			rest += t.SpoolBytes()
		}
	}
	if nCoded <= 0 || 100*(tied+rest) < outputBytes {
		return ""
	}
	parts := []string{fmt.Sprintf("compressed layers %.1f %%", 100*float64(outputBytes-tied-rest)/float64(2*nCoded))}
	if 200*tied >= outputBytes {
		parts = append(parts, "tied embedding of "+human.Bytes(tied)+" stays BF16")
	}
	if 200*rest >= outputBytes {
		parts = append(parts, human.Bytes(rest)+" of other weights stay as they are")
	}
	return strings.Join(parts, ", ")
}
