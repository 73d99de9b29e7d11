package metadata

import (
	"strconv"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// ManifestBytes returns about how large the manifest of a plan will be, before any weight is read:
// enough, and seldom a third too much. files are the original's weight files, whose headers are
// most of it.
func ManifestBytes(p *plan.Plan, files []plan.WeightFile) int64 {
	// what each entry takes besides its texts: keys, indentation, hashes, and numbers
	const whole, file, output, unit, tensor, pair, count = 2000, 250, 330, 260, 70, 70, 30
	n := int64(whole)
	for _, f := range files {
		n += file + quotedBytes(f.Path) + quotedBytes(f.Header.Raw)
	}
	for _, o := range p.OutputFiles {
		n += output + quotedBytes(o.Path)
		for _, t := range o.Plain {
			n += renamedBytes(t)
		}
	}
	for _, f := range p.AllCopied() {
		n += output + quotedBytes(f.Path)
	}
	for _, path := range p.SideFiles() {
		n += output + quotedBytes(path)
	}
	for _, u := range p.Units {
		// trained weights have up to 40 exponents, of which the longest counts are those of a few
		n += unit + quotedBytes(u.Path) + quotedBytes(u.File) + count*int64(len(strconv.FormatInt(u.NElems(), 10)))
		for _, t := range u.Attrs {
			n += tensor + quotedBytes(t.Name) + quotedBytes(t.SliceOf) + 12*int64(len(t.Shape)) + renamedBytes(t)
		}
		for _, t := range u.Siblings {
			n += renamedBytes(t)
		}
	}
	for _, a := range p.Aliases {
		n += pair + quotedBytes(a.Tensor.Source) + quotedBytes(a.Of.Name)
	}
	for _, t := range p.Dropped {
		n += pair + quotedBytes(t.Source)
	}
	for _, f := range p.NotCopied {
		n += pair + quotedBytes(f.Path) + quotedBytes(f.Why)
	}
	for _, text := range p.Differences {
		n += pair + quotedBytes(text)
	}
	return n
}

// renamedBytes returns what the manifest says of a tensor whose name changes.
func renamedBytes(t plan.Tensor) int64 {
	if t.Name == t.Source {
		return 0
	}
	return 70 + quotedBytes(t.Source) + quotedBytes(t.Name)
}

// quotedBytes returns the size of a text as a JSON string.
func quotedBytes[T string | []byte](text T) int64 {
	n := int64(2 + len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			n++
		case c < ' ':
			n += 5
		case c == 0xe2 && i+2 < len(text) && text[i+1] == 0x80 && text[i+2]&^1 == 0xa8: // U+2028, U+2029
			n += 3
		}
	}
	return n
}
