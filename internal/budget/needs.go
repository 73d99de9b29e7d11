package budget

import (
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Needs is what a conversion takes: transfers as far as the size of the output is known, and bounds
// of disk and memory.
type Needs struct {
	// Download and Upload are bytes that cross the network: Download is 0 for a local source,
	// Upload supposes a push.
	Download int64 `json:"download_bytes"`
	Upload   int64 `json:"upload_bytes"`
	// Disk bounds a conversion into a folder, with the folder's files, and DiskPush one with --push
	// alone, if the Hub copies no file from repo to repo by itself. Both take the sizes of finished
	// files from the estimate.
	Disk     int64 `json:"disk_bytes"`
	DiskPush int64 `json:"disk_push_bytes"`
	// DiskLeast and DiskFolderLeast are the smallest --disk that works with --push alone, and into
	// a folder, whose own files do not count.
	DiskLeast       int64 `json:"disk_least_bytes"`
	DiskFolderLeast int64 `json:"disk_folder_least_bytes"`
	// Memory bounds buffers, tables and spools in memory.
	Memory int64 `json:"memory_bytes"`
}

// Budget is what a conversion may use.
type Budget struct {
	Memory Memory
	Disk   int64 // 0: no bound
	Part   spans.Part
}

// FindNeeds bounds what converting m takes within a budget. A disk that nothing fits on is a
// DiskError beside the needs with the least disk that works; a memory that cannot hold the model's
// tables is a MemoryError, without needs.
func FindNeeds(m *model.Model, p *plan.Plan, e *Estimate, b Budget) (Needs, error) {
	if err := b.Memory.Check(m, p); err != nil {
		return Needs{}, err
	}
	outputs, carried := spans.Outputs(p), PeakCopies(p, 0, math.MaxInt)
	n := Needs{Upload: e.OutputBytes + carried}
	if !m.Local {
		n.Download = p.SourceBytes() + carried
	}
	folder := b.held(m, outputs, nil)
	n.Disk, n.DiskFolderLeast = folder.disk+e.OutputBytes+carried, folder.least
	push := b.held(m, b.Part.Of(outputs), e.Files)
	n.DiskPush, n.DiskLeast = push.disk, push.least
	if b.Part.Whole() {
		n.DiskPush = max(n.DiskPush, PeakCopies(p, b.Disk, Uploads))
		n.DiskLeast = max(n.DiskLeast, PeakCopies(p, 0, 1))
	}
	n.Memory = b.Memory.Bound(m, p, max(folder.memory, push.memory),
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

// holding bounds what outputs take on their way: their spools, and their files if these wait for an
// upload.
type holding struct {
	disk, memory int64
	least        int64 // the smallest disk budget that works
	unfinished   int64 // of all spools that are filled at once
}

// held bounds what outputs on their way take within the budget: their spools, and their finished
// files if sizes gives these. A budget that is too small counts as the least that works.
func (b Budget) held(m *model.Model, outputs []*spans.Output, sizes []int64) (h holding) {
	d := NewDemand(outputs, spans.Segments(outputs, len(m.Listing.Weights)), m.Local, sizes != nil,
		b.Memory.Spools)
	h.unfinished = d.Peak(all)
	h.disk = d.spoolBound()
	h.memory = min(h.disk, d.memory)
	if sizes != nil {
		h.disk += largest(outputs, Uploads+filesBeside,
			func(o *spans.Output) int64 { return sizes[o.Index] })
	}
	h.least = d.Least()
	if h.disk = max(h.disk, h.least); b.Disk > 0 {
		h.disk = min(h.disk, max(h.least, b.Disk))
	}
	return h
}

// spoolBound is the most that spools hold at once: those that are being filled, and full ones of
// outputs on their way.
func (d *Demand) spoolBound() int64 {
	size := func(o *spans.Output) int64 { return o.Size }
	return min(d.Peak(all)+largest(d.spooled, spoolsBeside, size),
		largest(d.spooled, len(d.spooled), size))
}

// largest adds up the largest n sizes.
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

// CarriedFiles lists what the result takes over as it is: small files, and the other components of
// a pipeline.
func CarriedFiles(p *plan.Plan) []plan.File { return slices.Concat(p.Copied, p.Components) }

// PeakCopies is the most that files that are carried over take of the disk at once, n of them on
// their way, if the Hub copies none of them by itself. A limit of 0 is none.
func PeakCopies(p *plan.Plan, limit int64, n int) int64 {
	peak := largest(CarriedFiles(p), n, func(f plan.File) int64 { return f.Size })
	if limit > 0 {
		peak = min(peak, limit)
	}
	return peak
}
