package budget

import (
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Needs is what a conversion takes: the download, and bounds on disk and memory.
type Needs struct {
	Download int64 // 0 for a local source
	// Disk bounds a conversion into a folder, including the folder's files. DiskPush bounds one
	// with only --push, if the Hub copies no file from repo to repo itself. Both take the sizes of
	// finished files from the estimate.
	Disk     int64
	DiskPush int64
	// DiskLeast is the smallest --disk that works with only --push, and what must be free.
	// DiskFolderLeast is the smallest --disk that works for a folder, whose own files don't count.
	// DiskFolderFree is what must be free for a folder, with its files.
	DiskLeast       int64
	DiskFolderLeast int64
	DiskFolderFree  int64
	// Memory bounds buffers, tables, and spools in memory.
	Memory int64
}

// Budget is what a conversion may use.
type Budget struct {
	Memory Memory
	Disk   int64 // 0: no limit
	Part   spans.Part
}

// FindNeeds computes bounds for a conversion of m within a budget. If nothing fits on the disk, it
// returns a DiskError along with the needs, which have the smallest disk that works. If the memory
// can't hold the model's tables, it returns a MemoryError and no needs.
func FindNeeds(m *model.Model, p *plan.Plan, e *Estimate, b Budget) (Needs, error) {
	if err := b.Memory.Check(m, p); err != nil {
		return Needs{}, err
	}
	outputs, err := spans.Outputs(p)
	if err != nil {
		return Needs{}, err
	}
	carried := PeakCopies(p, 0, math.MaxInt)
	n := Needs{}
	if !m.Local {
		n.Download = p.SourceBytes() + carried
	}
	folder := b.held(m, outputs, nil)
	n.DiskFolderLeast = folder.least
	written := WrittenBytes(m, p)
	n.DiskFolderFree = folder.least + spans.LikelyBytes(outputs) + carried + written
	n.Disk = max(folder.disk+e.OutputBytes+carried+written, n.DiskFolderFree)
	push := b.held(m, b.Part.Of(outputs), e.Files)
	n.DiskPush, n.DiskLeast = push.disk, push.least
	if b.Part.Whole() {
		n.DiskPush = max(n.DiskPush, PeakCopies(p, b.Disk, Copies))
		n.DiskLeast = max(n.DiskLeast, PeakCopies(p, 0, 1))
	}
	if b.Part.Whole() && Wait(p, outputs, b.Disk) {
		n.DiskPush = max(n.DiskPush, n.Disk)
	}
	n.Memory = b.Memory.Bound(m, p, folder.memory,
		max(folder.unfinished, largest(outputs, 1, (*spans.Output).MaxBytes)))
	least := n.DiskFolderLeast
	if !b.Part.Whole() {
		least = n.DiskLeast // parts are published
	}
	if b.Disk > 0 && b.Disk < least {
		return n, &DiskError{Need: least, Have: b.Disk}
	}
	return n, nil
}

// holding bounds the disk and memory of unfinished outputs: their spools and, if they wait for an
// upload, their files.
type holding struct {
	disk, memory int64
	least        int64 // smallest disk budget that works
	unfinished   int64 // of all spools that are filled at once
}

// held bounds the disk and memory of unfinished outputs: their spools and, unless sizes is nil,
// their finished files. If the budget is too small, it counts as the smallest that works.
func (b Budget) held(m *model.Model, outputs []*spans.Output, sizes []int64) (h holding) {
	d := NewDemand(outputs, spans.Segments(outputs, len(m.Listing.Weights)), m.Local, sizes != nil,
		b.Memory.Spools)
	h.unfinished = d.peak(all)
	h.disk = d.spoolBound()
	h.memory = min(h.disk, d.memory)
	if sizes != nil {
		h.disk += finished(outputs, func(o *spans.Output) int64 { return sizes[o.Index] })
	}
	h.least = d.Least()
	if h.disk = max(h.disk, h.least); b.Disk > 0 {
		h.disk = min(h.disk, max(h.least, b.Disk))
	}
	return h
}

// UploadShare returns a file's share of UploadBytes while it's uploaded. Two files of any size fit.
func UploadShare(size int64) int64 { return min(size, UploadBytes/2) }

// finished returns the most that finished files hold at once: those being uploaded, which may be two
// large ones, one with some small ones, or small ones only, and those before their upload.
func finished(outputs []*spans.Output, size func(*spans.Output) int64) int64 {
	small := func(n int) int64 {
		return largest(outputs, n, func(o *spans.Output) int64 {
			if size(o) > UploadBytes/2 {
				return 0
			}
			return size(o)
		})
	}
	return min(largest(outputs, Uploads+otherFiles, size), max(
		largest(outputs, otherFiles+2, size),
		largest(outputs, otherFiles+1, size)+min(UploadBytes/2, small(Uploads-1)),
		largest(outputs, otherFiles, size)+min(UploadBytes, small(Uploads))))
}

// spoolBound returns the most that spools hold at once: those being filled, and full ones of
// unfinished outputs.
func (d *Demand) spoolBound() int64 {
	size := func(o *spans.Output) int64 { return o.Size }
	return min(d.peak(all)+largest(d.spooled, fullSpools, size),
		largest(d.spooled, len(d.spooled), size))
}

// largest returns the sum of the largest n sizes.
func largest[T any](of []T, n int, size func(T) int64) (sum int64) {
	var sizes []int64
	for _, x := range of {
		sizes = append(sizes, size(x))
	}
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-n):] {
		sum += size
	}
	return sum
}

// WrittenBytes returns about how much disk the files take that a conversion writes next to the
// weights: the manifest, and the card, its picture, and config.json.
func WrittenBytes(m *model.Model, p *plan.Plan) int64 {
	const small = 128 << 10 // about twice what these three take for a model of 100 modules
	return metadata.ManifestBytes(p, m.Original().Listing.Weights) + small
}

// WaitBytes limits what waits for the last commit: a whole result, or the copied files of a larger
// one.
const WaitBytes = 64 << 20

// Wait reports whether a result of these outputs is small enough for all of it to wait on the disk
// for the last commit, so that the Hub is asked about its files together. Spools get half of the
// disk, hence three times its size; 0 means no limit.
func Wait(p *plan.Plan, outputs []*spans.Output, disk int64) bool {
	all := largest(outputs, math.MaxInt, (*spans.Output).MaxBytes) +
		PeakCopies(p, 0, math.MaxInt)
	return all <= WaitBytes && (disk == 0 || 3*all <= disk)
}

// PeakCopies returns the most disk that carried files take at once, with n of them in transit, if
// the Hub copies none itself. A limit of 0 means no limit.
func PeakCopies(p *plan.Plan, limit int64, n int) int64 {
	peak := largest(p.AllCopied(), n, func(f plan.File) int64 { return f.Size })
	if limit > 0 {
		peak = min(peak, limit)
	}
	return peak
}
