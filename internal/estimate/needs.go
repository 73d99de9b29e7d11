package estimate

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Needs is what a conversion takes. Disk and transfers are exact up to the estimate of the output; memory follows from the
// sizes of the buffers, and was never less than what was measured (docs/measured.md).
type Needs struct {
	// Download and Upload are bytes that cross the network: Download is 0 for a local source, Upload supposes a push.
	Download int64 `json:"download_bytes"`
	Upload   int64 `json:"upload_bytes"`
	// Requests to the Hub for fetching, and for publishing if that is asked for.
	DownloadRequests int64 `json:"download_requests"`
	UploadRequests   int64 `json:"upload_requests"`
	// Disk is the peak with an output folder, DiskPush with --push alone. DiskFolderLeast and DiskLeast are the smallest --disk
	// that works in the two cases; a folder's own files do not count. DiskPush, DiskLeast and FinishDisk suppose that the Hub
	// copies no file from repo to repo by itself.
	Disk            int64 `json:"disk_bytes"`
	DiskPush        int64 `json:"disk_push_bytes"`
	DiskLeast       int64 `json:"disk_least_bytes"`
	DiskFolderLeast int64 `json:"disk_folder_least_bytes"`
	// Memory is the peak of buffers, tables and spools in memory, SpoolMemory that of spools alone.
	Memory int64 `json:"memory_bytes"`
	// FinishDisk and FinishDownload are for the run with --finish, which verifies the source files from the published parts.
	FinishDisk     int64 `json:"finish_disk_bytes"`
	FinishDownload int64 `json:"finish_download_bytes"`
	SpoolMemory    int64 `json:"spool_memory_bytes"`
}

// Budget is what a conversion may use; zero values mean its defaults.
type Budget struct {
	Workers, Uploads  int
	Disk, SpoolMemory int64 // as the conversion's options have them
	RangeBytes        int64 // what the Hub client asks for at a time; never 0
	Buffers           int64 // what it fetches ahead at most, in memory
	Memory            int64 // that all together may take; 0: no bound
	Part              spans.Part
}

// Sizes behind the memory bound: the program with its runtime, and the buffers of one worker in the encoder and the
// verifier. A counter keeps 1 KiB for every 256 KiB of weights. A tensor is held in a header, the plan and its spans, an output
// in the plan, its task, the ledger and the manifest: these two were measured with 10,000 outputs.
const (
	memoryBase      = 40 << 20
	memoryPerWorker = 6 << 20
	memoryPerUpload = 2 << 20
	bytesPerCount   = 256
	bytesPerTensor  = 1200
	bytesPerOutput  = 5 << 10
	leastBuffers    = 44 << 20 // the program and one worker, where every budget is at its least
)

// MemoryError says that a memory budget is too small for the tables of a model with very many tensors.
type MemoryError struct {
	Need, Have       int64
	Tensors, Outputs int
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s of memory is too little for a model of %s tensors, converted to %s files: at least %s are needed",
		human.Bytes(e.Have), human.Grouped(int64(e.Tensors), ","), human.Grouped(int64(e.Outputs), ","), human.BytesUp(e.Need))
}

// CheckMemory refuses a memory budget that cannot hold what is known of every tensor and output. 0 is no budget.
func CheckMemory(m *model.Model, p *plan.Plan, budget int64) error {
	need := leastBuffers + tables(m, len(p.OutputFiles))
	if budget == 0 || budget >= need {
		return nil
	}
	return &MemoryError{need, budget, nTensors(m), len(p.OutputFiles)}
}

// tables is the size of what is known of every tensor and output.
func tables(m *model.Model, outputs int) int64 {
	return bytesPerTensor*int64(nTensors(m)) + bytesPerOutput*int64(outputs)
}

func nTensors(m *model.Model) (n int) {
	for _, w := range m.Listing.Weights {
		n += len(w.Header.Tensors)
	}
	return n
}

// Transfers with the Hub.
const (
	requestsPerFile = 5 // uploading: preupload, batch, the bytes, verify, and a share of commits
	lastRequests    = 4 // of the commit that ends a conversion

	// CommitFiles is how many files one commit brings at most.
	CommitFiles = 50
)

// FindNeeds computes what converting m takes within a budget. A disk that nothing fits on is a BudgetError beside the needs with
// the least disk that works; a memory that cannot hold the model's tables is a MemoryError, without needs.
func FindNeeds(m *model.Model, p *plan.Plan, e *Estimate, b Budget) (Needs, error) {
	if err := CheckMemory(m, p, b.Memory); err != nil {
		return Needs{}, err
	}
	b.Workers, b.Uploads = max(1, b.Workers), max(1, b.Uploads)
	outputs := spans.Outputs(p)
	segments := spans.Segments(outputs, len(m.Listing.Weights))
	size := func(o *spans.Output) int64 { return e.Files[o.Index] }
	carried := carriedBytes(p)
	n := Needs{
		Upload:         e.OutputBytes + carried,
		UploadRequests: requestsPerFile*int64(len(outputs)) + int64(len(outputs)/CommitFiles) + int64(len(p.Copied)) + lastRequests,
	}
	var spools int64
	if !m.Local {
		spools = PeakSpool(segments, func(*spans.Output) bool { return true })
		n.Download, n.DownloadRequests = p.SourceBytes()+carried, b.downloadRequests(m, p)
	}
	ours := b.Part.Of(outputs)
	n.DiskLeast, n.DiskFolderLeast = b.demand(m, true).least(ours, spans.Segments(ours, len(segments))), b.demand(m, false).least(outputs, segments)
	least := n.DiskFolderLeast
	if !b.Part.Whole() {
		least = n.DiskLeast // parts are published
	}
	push, folder := b, spools
	var tooSmall, err error
	if b.Disk > 0 {
		if b.Disk < least {
			tooSmall = &BudgetError{Need: least, Have: b.Disk}
		}
		push.Disk = max(b.Disk, n.DiskLeast) // what --push takes is told even if it is more than there is
		folder = min(spools, max(b.Disk, n.DiskFolderLeast))
	}
	n.Disk = folder + e.OutputBytes + carried
	if n.DiskPush, n.SpoolMemory, err = push.pushing(m, outputs, size); err != nil {
		return n, err
	}
	n.FinishDisk, n.FinishDownload = b.finishing(outputs, segments, size)
	n.FinishDownload += carried
	copies := PeakCopies(p, b.Disk, b.Uploads)
	n.FinishDisk = max(n.FinishDisk, copies)
	if b.Part.Whole() {
		n.DiskPush, n.DiskLeast = max(n.DiskPush, copies), max(n.DiskLeast, PeakCopies(p, 0, 1))
	}
	n.Memory = n.SpoolMemory + b.buffers(m, len(outputs), max(spools, largestFile(outputs))/bytesPerCount)
	if b.Memory > 0 {
		n.Memory = min(n.Memory, b.Memory)
	}
	return n, tooSmall
}

// pushing is the most that a conversion with --push alone takes of the disk, and of memory for spools.
func (b Budget) pushing(m *model.Model, outputs []*spans.Output, size bytesOf) (disk, memory int64, err error) {
	outputs = b.Part.Of(outputs)
	segments := spans.Segments(outputs, len(m.Listing.Weights))
	shares, err := Divide(outputs, segments, b.demand(m, true))
	if err != nil {
		return 0, 0, err
	}
	arrivals := inFileOrder(segments)
	if m.Local {
		arrivals = byOutput(outputs)
	}
	spool := func(inMemory bool) bytesOf {
		return func(o *spans.Output) int64 {
			if m.Local || shares.InMemory[o] != inMemory {
				return 0
			}
			return o.Size
		}
	}
	for _, held := range heldSpools(arrivals, spool(true), shares.Memory) {
		memory = max(memory, held)
	}
	return peakDisk(arrivals, spool(false), size, shares, b.Uploads), memory, nil
}

// demand is what there is for spools, and for finished files if they wait for their upload.
func (b Budget) demand(m *model.Model, push bool) Demand {
	return Demand{
		Spooled: func(o *spans.Output) bool { return !m.Local || o.Narrows() },
		Outputs: push, Disk: b.Disk, Memory: b.SpoolMemory,
	}
}

// largestFile bounds the size of the largest finished file.
func largestFile(outputs []*spans.Output) (largest int64) {
	for _, o := range outputs {
		largest = max(largest, o.MaxBytes())
	}
	return largest
}

// finishing is what the run with --finish takes. It verifies each source file from the outputs that hold its tensors. It downloads
// an output whole if the disk has room, and keeps it as long as the next source files need it too.
func (b Budget) finishing(outputs []*spans.Output, segments [][]spans.Segment, size bytesOf) (disk, download int64) {
	here := map[*spans.Output]bool{}
	var held int64
	for _, file := range segments {
		used := spans.UsedBy(file)
		for o := range here {
			if !slices.Contains(used, o) {
				delete(here, o)
				held -= size(o)
			}
		}
		for _, o := range used {
			if here[o] {
				continue
			}
			download += size(o)
			if b.Disk == 0 || held+size(o) <= b.Disk {
				here[o] = true
				held += size(o)
				disk = max(disk, held)
			}
		}
	}
	for _, o := range outputs {
		if len(o.Units) == 0 {
			download += o.Size // this run makes it
		}
	}
	return disk, download
}

// buffers is the memory for everything but spools. counts is the memory for the counts of exponents.
func (b Budget) buffers(m *model.Model, outputs int, counts int64) int64 {
	n := memoryBase + int64(b.Workers)*memoryPerWorker + int64(b.Uploads)*memoryPerUpload + counts
	n += 2 * tables(m, outputs) // the collector lets garbage grow to as much again
	if !m.Local {
		ahead := min(b.Buffers, largestSource(m)) // one file is read at a time
		n += ahead + ahead/5                      // the collector is late by about that much, as measured (docs/measured.md)
	}
	return n
}

func largestSource(m *model.Model) (largest int64) {
	for _, w := range m.Listing.Weights {
		largest = max(largest, w.Size)
	}
	return largest
}

// downloadRequests counts a look at the repo, and for every file where it lies and its ranges.
func (b Budget) downloadRequests(m *model.Model, p *plan.Plan) int64 {
	n := int64(2)
	file := func(size int64) { n += 1 + (size+b.RangeBytes-1)/b.RangeBytes }
	for _, w := range m.Listing.Weights {
		file(w.Size)
		n++ // its header
	}
	for _, f := range CarriedFiles(p) {
		file(f.Size)
	}
	return n
}

// CarriedFiles lists what the result takes over as it is: small files, and the other components of a pipeline.
func CarriedFiles(p *plan.Plan) []plan.File { return slices.Concat(p.Copied, p.Components) }

func carriedBytes(p *plan.Plan) (n int64) {
	for _, f := range CarriedFiles(p) {
		n += f.Size
	}
	return n
}

// PeakCopies is the most that files that are carried over take of the disk at once, n of them on their way, if the Hub
// copies none of them by itself. A limit of 0 is none.
func PeakCopies(p *plan.Plan, limit int64, n int) (peak int64) {
	var sizes []int64
	for _, f := range CarriedFiles(p) {
		sizes = append(sizes, f.Size)
	}
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-n):] {
		peak += size
	}
	if limit > 0 {
		peak = min(peak, limit)
	}
	return peak
}
