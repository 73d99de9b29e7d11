package pipeline

import (
	"cmp"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Needs is what a conversion takes, before it runs. Disk and bytes are exact up to the estimate of the output; memory
// follows from the sizes of the buffers, and was within 10 % of what was measured (docs/scale.md).
type Needs struct {
	// Download and Upload are bytes that cross the network: 0 for a local source, or without a target.
	Download int64 `json:"download_bytes"`
	Upload   int64 `json:"upload_bytes"`
	// Requests to the Hub for fetching, and for publishing if that is asked for.
	DownloadRequests int64 `json:"download_requests"`
	UploadRequests   int64 `json:"upload_requests"`
	// Disk is the peak with an output folder, DiskPush with --push alone, DiskLeast the smallest --disk that works. The
	// last two, and FinishDisk, suppose that the Hub copies no file from repo to repo by itself.
	Disk      int64 `json:"disk_bytes"`
	DiskPush  int64 `json:"disk_push_bytes"`
	DiskLeast int64 `json:"disk_least_bytes"`
	// Memory is the peak of buffers, tables and spools in memory, SpoolMemory that of the last alone.
	Memory int64 `json:"memory_bytes"`
	// FinishDisk and FinishDownload are what the run takes that finishes parts, and proves the source files from them.
	FinishDisk     int64 `json:"finish_disk_bytes"`
	FinishDownload int64 `json:"finish_download_bytes"`
	SpoolMemory    int64 `json:"spool_memory_bytes"`
}

// Sizes behind the memory bound: the program with its runtime, and the buffers of one worker in the encoder and the
// verifier. A counter keeps 1 KiB for every 256 KiB of weights, and a header is held as bytes and as parsed tensors.
const (
	memoryBase      = 64 << 20
	memoryPerWorker = 6 << 20
	memoryPerUpload = 2 << 20
	bytesPerCount   = 256
	headerCopies    = 6
	rangeBytes      = 16 << 20 // what the Hub client asks for at a time
	connections     = 8        // and how many of these it keeps in flight
	requestsPerFile = 5        // uploading: preupload, batch, the bytes, verify, and a share of commits
)

// FindNeeds computes what converting m takes within a budget. A disk that nothing fits on is an error.
func FindNeeds(m *Model, p *plan.Plan, e *Estimate, b Budget) (Needs, error) {
	tasks := newTasks(p)
	var n Needs
	var spool, largest, largestOut, headers int64
	for _, t := range tasks {
		largest, largestOut = max(largest, t.size), max(largestOut, t.maxOutput())
	}
	for _, w := range m.Plan.Weights {
		headers += int64(len(w.Header.Raw))
	}
	copied := copiedBytes(p)
	if !m.Local {
		spool = peakSpool(segments(tasks, len(m.Plan.Weights)), func(*task) bool { return true })
		n.Download, n.DownloadRequests = p.SourceBytes()+copied, downloadRequests(m, p)
	} else {
		largest = 0
	}
	n.Upload = e.OutputBytes + copied
	n.UploadRequests = requestsPerFile*int64(len(p.OutputFiles)) + int64(len(p.OutputFiles)/batchFiles) + int64(len(p.Copied)) + 4
	n.Disk = spool + e.OutputBytes + copied
	var err error
	if n.DiskPush, n.SpoolMemory, err = b.peaks(m, p, e); err != nil {
		return n, err
	}
	copies := peakCopies(p, b.Disk, max(1, b.Uploads))
	if b.Part.whole() {
		n.DiskPush, n.DiskLeast = max(n.DiskPush, copies), largestCopy(p)
	}
	sizes := map[*task]int64{}
	for i, t := range tasks {
		sizes[t] = e.Files[i]
	}
	n.FinishDisk, n.FinishDownload = b.finishNeeds(tasks, segments(tasks, len(m.Plan.Weights)), func(t *task) int64 { return sizes[t] })
	n.FinishDownload += copied
	n.FinishDisk = max(n.FinishDisk, copies)
	least := largestOut
	if largest > max(0, cmp.Or(b.SpoolMemory, defaultSpoolMemory)) {
		least += largest
	}
	n.DiskLeast = max(n.DiskLeast, least)
	n.Memory = n.SpoolMemory + memoryBase + int64(max(1, b.Workers))*memoryPerWorker + int64(max(1, b.Uploads))*memoryPerUpload + max(spool, largestOut)/bytesPerCount + headerCopies*headers
	if !m.Local {
		buffers := cmp.Or(b.Buffers, connections*rangeBytes)
		n.Memory += buffers + buffers/5 // the collector is late by about that much, as measured (docs/scale.md)
	}
	if b.Memory > 0 {
		n.Memory = min(n.Memory, b.Memory)
	}
	return n, nil
}

func copiedBytes(p *plan.Plan) (n int64) {
	for _, f := range carriedFiles(p) {
		n += f.Size
	}
	return n
}

// downloadRequests counts a look at the repo, and for every file where it lies and its ranges.
func downloadRequests(m *Model, p *plan.Plan) int64 {
	n := int64(2)
	file := func(size int64) { n += 1 + (size+rangeBytes-1)/rangeBytes }
	for _, w := range m.Plan.Weights {
		file(w.Size)
		n++ // its header
	}
	for _, f := range carriedFiles(p) {
		file(f.Size)
	}
	return n
}
