package pipeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/inspect"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/verify"
)

// OpenDF11File opens a DF11 model in one local .safetensors file, as ComfyUI has them.
func OpenDF11File(name string) (*DF11, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	base := filepath.Base(name)
	d := &DF11{Name: name, files: map[string]df11File{base: {size: st.Size(), r: f}}, close: []func() error{f.Close}}
	if err := d.readHeaders(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// InspectSource describes a source: its types, and what DF11 makes of its units. p and e are its plan and estimate; both
// are nil if it cannot be converted, for the reason in refused.
func InspectSource(m *Model, p *plan.Plan, e *Estimate, refused error) *inspect.Report {
	r := &inspect.Report{Name: m.ID, Commit: m.Commit, Kind: inspect.Source, Files: len(m.Plan.Weights)}
	types := map[safetensors.DType]*inspect.DType{}
	for _, w := range m.Plan.Weights {
		r.Bytes += w.Size
		addTypes(types, w.Header)
	}
	r.DTypes, r.BF16Bytes = typeList(types), r.Bytes
	if refused != nil {
		r.Refused = refused.Error()
	}
	if p != nil {
		r.Layout, r.Entry, r.Provenance = string(p.Layout), p.Entry, p.Provenance
		r.Exact, r.DF11Bytes = e.Exact, e.OutputBytes
		parts := partSums{}
		for i, u := range p.Units {
			r.Units = append(r.Units, inspectEstimate(u, e.Units[i]))
			parts.addEstimate(u, e.Units[i])
		}
		for _, t := range p.Remainder {
			parts[inspect.PartPlain] += spoolBytes(t)
		}
		r.Parts = parts.list(r.DF11Bytes)
	}
	r.Finish()
	return r
}

// inspectEstimate describes a unit by its samples.
func inspectEstimate(u plan.Unit, e UnitEstimate) inspect.Unit {
	x := inspect.Unit{Path: u.Path, Tensors: len(u.Attrs), Weights: u.NElems(), Bytes: e.Bytes, NBits: e.Bits, LUTs: int(e.LUTs)}
	x.Reason, x.Why = e.BF16, metadata.ReasonText(e.BF16)
	if e.Stats != nil {
		x.Histogram, x.Lengths = e.Stats.Histogram, e.Stats.CodeBits
	}
	x.Finish()
	return x
}

func addTypes(types map[safetensors.DType]*inspect.DType, h *safetensors.Header) {
	for _, t := range h.Tensors {
		d := types[t.DType]
		if d == nil {
			d = &inspect.DType{Name: string(t.DType)}
			types[t.DType] = d
		}
		d.Tensors, d.Elems, d.Bytes = d.Tensors+1, d.Elems+t.NElems(), d.Bytes+t.NBytes()
	}
}

func typeList(types map[safetensors.DType]*inspect.DType) []inspect.DType {
	list := []inspect.DType{}
	for _, d := range types {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b inspect.DType) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// partSums adds up where the stored bytes go.
type partSums map[string]int64

// partOf is the part that a stored tensor belongs to, by its last name.
var partOf = map[string]string{
	"luts": inspect.PartTables, "split_positions": inspect.PartTables, "encoded_exponent": inspect.PartExponents,
	"sign_mantissa": inspect.PartSignMantissa, "output_positions": inspect.PartPlaces, "gaps": inspect.PartPlaces,
}

func (s partSums) addEstimate(u plan.Unit, e UnitEstimate) {
	for _, t := range plainOf(u, e) {
		s[inspect.PartPlain] += spoolBytes(t)
	}
	if e.BF16 != "" {
		return
	}
	for _, t := range unitTensors(u, e) {
		s[partOf[t.Name[len(u.Path)+1:]]] += t.NBytes()
	}
}

// list gives the parts in the order of the charts; what is left of the total are headers.
func (s partSums) list(total int64) []inspect.Part {
	var list []inspect.Part
	for _, name := range []string{inspect.PartSignMantissa, inspect.PartExponents, inspect.PartPlaces, inspect.PartTables, inspect.PartPlain} {
		list = append(list, inspect.Part{Name: name, Bytes: s[name]})
		total -= s[name]
	}
	return append(list, inspect.Part{Name: inspect.PartHeaders, Bytes: max(0, total)})
}

// InspectDF11 describes a DF11 model. Headers, tables and positions are read whole; of the weights at most about
// maxBytes are decoded for the distribution of their exponents, spread over the units.
func InspectDF11(ctx context.Context, d *DF11, maxBytes int64) (*inspect.Report, error) {
	r := &inspect.Report{Name: d.Name, Commit: d.Commit, Kind: inspect.DF11, Layout: d.Layout(), Exact: true}
	if d.Manifest != nil {
		r.Entry, r.Provenance = d.Manifest.Plan.Entry, d.Manifest.Plan.Provenance
	}
	if d.Dict == nil && len(d.weightFiles(d.Dir)) > 1 {
		r.Traps = append(r.Traps, inspect.Trap{Name: "config.json", Kind: "no_config", Detail: "there is none with dfloat11_config"})
	}
	for _, x := range d.traps(nil) {
		r.Traps = append(r.Traps, inspect.Trap{Name: x.Name, Kind: string(x.Trap), Detail: x.Detail})
	}
	types := map[safetensors.DType]*inspect.DType{}
	for _, f := range d.files {
		if f.header != nil {
			r.Files, r.Bytes = r.Files+1, r.Bytes+f.size
			addTypes(types, f.header)
		}
	}
	r.DTypes, r.DF11Bytes = typeList(types), r.Bytes
	parts, units := d.sortTensors()
	r.BF16Bytes = r.Bytes
	for _, s := range parts {
		r.BF16Bytes -= s
	}
	r.BF16Bytes += parts[inspect.PartPlain]
	r.Units = make([]inspect.Unit, len(units))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(samplesAtOnce)
	for i, path := range units {
		share := d.unitShare(maxBytes, d.tensors[path+".sign_mantissa"].NBytes(), parts[inspect.PartSignMantissa], len(units))
		g.Go(func() (err error) {
			if r.Units[i], err = d.inspectUnit(gctx, path, share); err != nil {
				err = fmt.Errorf("unit %s: %w", path, err)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, u := range r.Units {
		r.BF16Bytes += 2 * u.Weights
		r.Exact = r.Exact && int64(u.Histogram.Total()) == u.Weights
	}
	r.Parts = parts.list(r.Bytes)
	r.Finish()
	return r, nil
}

// remoteSamples is about how many pieces of a remote model are decoded: each takes three requests.
const remoteSamples = 160

// unitShare is how many weights of a unit with n of total weights are decoded.
func (d *DF11) unitShare(maxBytes, n, total int64, nUnits int) int64 {
	if total == 0 {
		return 0
	}
	share := int64(float64(maxBytes/2) * float64(n) / float64(total))
	if d.Commit != "" && maxBytes > 0 {
		share = min(share, int64(max(2, remoteSamples/nUnits))*decodeElems)
	}
	return share
}

// direct reads a remote file by the very ranges that are asked for: samples lie too far apart for whole blocks.
func direct(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	if h, ok := r.(*hubReaderAt); ok {
		return rangeOfHub{ctx, h}
	}
	return r
}

// rangeOfHub is a remote file without a cache.
type rangeOfHub struct {
	ctx context.Context //nolint:containedctx // see hubReaderAt
	h   *hubReaderAt
}

func (r rangeOfHub) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), r.h.ref.Size-off)
	if n <= 0 {
		return 0, io.EOF
	}
	b, err := r.h.client.ReadRange(r.ctx, r.h.ref, off, n)
	if err != nil {
		return 0, err
	}
	if copy(p, b); int(n) < len(p) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// directArrays are a unit's arrays, read without a cache.
func (d *DF11) directArrays(ctx context.Context, path string) verify.Arrays {
	at := func(name string) *io.SectionReader {
		t := d.tensors[path+"."+name]
		f := d.files[t.file]
		if f.r == nil {
			return io.NewSectionReader(memory(nil), 0, 0)
		}
		return io.NewSectionReader(direct(ctx, f.r), f.header.DataStart()+t.Begin, t.NBytes())
	}
	return verify.Arrays{
		LUTs: at("luts"), EncodedExponent: at("encoded_exponent"), SignMantissa: at("sign_mantissa"),
		OutputPositions: at("output_positions"), Gaps: at("gaps"), SplitPositions: at("split_positions"),
	}
}

// sortTensors adds up the parts and lists the paths of the coded units.
func (d *DF11) sortTensors() (partSums, []string) {
	parts := partSums{}
	var units []string
	for _, name := range slices.Sorted(maps.Keys(d.tensors)) {
		path, last, _ := cutLast(name)
		if d.coded(path) && partOf[last] != "" {
			parts[partOf[last]] += d.tensors[name].NBytes()
			if last == "encoded_exponent" {
				units = append(units, path)
			}
			continue
		}
		parts[inspect.PartPlain] += d.tensors[name].NBytes()
	}
	return parts, units
}

// cutLast splits a tensor's name at its last dot.
func cutLast(name string) (before, last string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// inspectUnit reads a unit's tables and positions, and decodes some of its weights.
func (d *DF11) inspectUnit(ctx context.Context, path string, maxElems int64) (inspect.Unit, error) {
	if err := d.checkForm(path); err != nil {
		return inspect.Unit{}, err
	}
	a := d.directArrays(ctx, path)
	x := inspect.Unit{Path: path, Tensors: int(a.SplitPositions.Size()/8) + 1, Weights: a.SignMantissa.Size()}
	opened, err := verify.Open(a, x.Weights, nil)
	if err != nil {
		return x, err
	}
	for _, r := range []*io.SectionReader{a.LUTs, a.EncodedExponent, a.SignMantissa, a.OutputPositions, a.Gaps, a.SplitPositions} {
		x.Bytes += r.Size()
	}
	x.NBits, x.LUTs = 8*a.EncodedExponent.Size(), int(a.LUTs.Size()/256)
	if _, err := a.LUTs.ReadAt(x.Lengths[:], a.LUTs.Size()-256); err != nil {
		return x, err
	}
	if x.LargestChunk, err = largestChunk(a.OutputPositions, x.Weights); err != nil {
		return x, err
	}
	if err := decodeSamples(ctx, opened, maxElems, &x.Histogram); err != nil {
		return x, err
	}
	x.Finish()
	return x, nil
}

// largestChunk finds the largest step between output positions (docs/format.md §7).
func largestChunk(positions *io.SectionReader, nElems int64) (int, error) {
	b := make([]byte, positions.Size())
	if n, err := positions.ReadAt(b, 0); n < len(b) {
		return 0, readError(err)
	}
	var most int64
	at := int64(0)
	for ; len(b) >= 4; b = b[4:] {
		next := int64(binary.LittleEndian.Uint32(b))
		most, at = max(most, next-at), next
	}
	return int(max(most, nElems-at)), nil
}

// decodeElems is how many weights are decoded at a time: about one chunk.
const decodeElems = 12 << 10

// decodeSamples counts at most maxElems weights of a unit, all if they are not more.
func decodeSamples(ctx context.Context, u *verify.Unit, maxElems int64, h *inspect.Histogram) error {
	buf := make([]byte, 2*decodeElems)
	runs := (u.NElems() + decodeElems - 1) / decodeElems
	picked := min(runs, maxElems/decodeElems)
	if u.NElems() <= maxElems {
		picked = runs
	}
	for i := range picked {
		run := (2*i + 1) * runs / (2 * picked)
		n := min(decodeElems, u.NElems()-run*decodeElems)
		if err := u.DecodeRange(ctx, run*decodeElems, n, buf[:2*n]); err != nil {
			return err
		}
		h.Add(buf[:2*n])
	}
	return nil
}

// DefaultSampleBytesDF11 is what an inspection decodes of a DF11 model, in bytes of BF16: everything up to 256 MiB of a
// local one, else as much as an estimate reads of a source.
func DefaultSampleBytesDF11(d *DF11) int64 {
	var nBytes int64
	for _, f := range d.files {
		if f.header != nil {
			nBytes += f.size
		}
	}
	if d.Commit == "" && 2*nBytes <= 256<<20 {
		return 2 * nBytes
	}
	return min(max(nBytes/sampleShare, minSampleBytes), maxSampleBytes)
}
