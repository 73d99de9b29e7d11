package budget

import (
	"fmt"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// How much a conversion uploads at once: at most Uploads files. They have UploadBytes together, but
// there may always be two. The Hub's client sends no more of them at once than the line needs.
const (
	Uploads     = 16
	UploadBytes = 256 << 20
)

// Copies is how many copied files are on their way at once if they don't all fit on the disk.
const Copies = 2

// LeastMemory is the smallest memory budget.
const LeastMemory = 64 << 20

// The memory table: what each part of the program needs. ForConversion divides a budget by these
// figures, and Bound adds them up.
const (
	// everything that doesn't grow with the workers: the program, stacks, headers, garbage
	baseMemory  = model.BaseMemory
	outsideHeap = 16 << 20 // part of baseMemory that the collector doesn't see
	// buffers of encoder and verifier, and blocks read ahead from a local file
	workerMemory = 9 << 20
	uploadMemory = 1 << 20

	// A counter keeps 1 KiB for every 256 KiB of weights. A tensor is in a header, the plan, and
	// its spans, which safetensors.TableBytes counts. An output is in the plan, its task, the
	// ledger, and the manifest, which was measured with 10,000 outputs.
	weightsPerCount = 256
	outputMemory    = 5 << 10
)

// How the rest of a budget is divided.
const (
	transferShare = 4 // 1/4 of the budget is for bytes fetched ahead
	minRange      = 1 << 20
	defaultSpools = 64 << 20 // without a budget
	minSpools     = 8 << 20  // less isn't worth it
	gpuShare      = 2        // 1/2 of the spools' share is for a GPU, if there is one
	pieceShare    = 8        // 1/8 of the budget is for pieces of a finished model on a Hub
	maxPieces     = 96 << 20
)

// Memory is how the program's memory is divided. A share of 0 means the default of the code that
// uses it.
type Memory struct {
	Budget  int64 // for all together; 0: no limit
	Workers int
	Heap    int64 // the collector's limit
	Spools  int64 // that a conversion holds in memory
	Pieces  int64 // of outputs that are read back from a Hub; 0: 96 MiB
	GPU     int64 // the most that a GPU may take of the host's memory

	// for each Hub client: how much it requests at a time, and how much it fetches ahead
	RangeBytes, AheadBytes int64
	// for headers and small files of each model that may be open at once; 0: no limit
	Tables int64
}

// ForConversion divides a budget of at least LeastMemory for a conversion; 0 means no budget.
// Workers come first, as many as the budget can hold, then uploads and transfers. Spools, which are
// outside the heap, get three quarters of the rest. Garbage and tables get the last quarter.
func ForConversion(budget int64, workers int) Memory {
	m := Memory{Budget: budget, Workers: max(1, workers), Spools: defaultSpools,
		Tables: model.TableMemory(budget, 1)}
	m.divideTransfers(budget)
	if budget == 0 {
		return m
	}
	m.Workers = min(m.Workers, max(1, int((budget-baseMemory)/workerMemory)))
	left := budget - m.buffers() - collected(transferMemory(budget))
	if m.Spools = left * 3 / 4; m.Spools < minSpools {
		m.Spools = 0
	}
	m.Heap = budget - outsideHeap - m.Spools
	m.Pieces = min(budget/pieceShare, maxPieces)
	m.GPU = max(1, m.Spools/gpuShare)
	return m
}

// ForReading divides a budget for a command without spools. Their share goes to the heap. There may
// be two Hub clients.
func ForReading(budget int64, workers int) Memory {
	m := ForConversion(budget, workers)
	if budget > 0 {
		m.Heap += m.Spools
		m.divideTransfers((budget - LeastMemory/2) / 2)
	}
	m.Spools, m.Tables = 0, model.TableMemory(budget, 2)
	return m
}

// BesideGPU takes n bytes of the host's memory for a GPU from the spools, or from the heap of a
// command without spools.
func (m Memory) BesideGPU(n int64) Memory {
	switch {
	case m.Budget == 0:
	case m.Spools > 0:
		m.Spools -= n
	default:
		m.Heap -= n
	}
	return m
}

// divideTransfers divides a budget into ranges that a Hub client fetches ahead. Without a budget,
// they have the client's own sizes.
func (m *Memory) divideTransfers(budget int64) {
	m.RangeBytes, m.AheadBytes = hub.DefaultRangeBytes, hub.RangesAhead*hub.DefaultRangeBytes
	if budget > 0 {
		m.AheadBytes = transferMemory(budget)
		m.RangeBytes = min(max(m.AheadBytes/hub.RangesAhead, minRange), hub.DefaultRangeBytes)
		m.AheadBytes = max(m.AheadBytes, m.RangeBytes)
	}
}

// transferMemory returns the budget's share for bytes fetched ahead. More than the client's own
// size isn't faster.
func transferMemory(budget int64) int64 {
	return min(budget/transferShare, hub.RangesAhead*hub.DefaultRangeBytes)
}

// collected returns the memory that n bytes of ranges need. Measurements show that the garbage
// collector is late by a quarter.
func collected(n int64) int64 { return n * 5 / 4 }

// buffers returns the memory that depends only on the number of workers.
func (m Memory) buffers() int64 {
	return baseMemory + int64(m.Workers)*workerMemory + Uploads*uploadMemory
}

// Bound returns the most memory that converting the model takes. spools is the part for spools, and
// counted is how many bytes of weights are counted at once.
func (m Memory) Bound(of *model.Model, p *plan.Plan, spools, counted int64) int64 {
	n := m.buffers() + spools + counted/weightsPerCount
	n += 2 * tables(of, p) // garbage may grow to as much again
	if !of.Local {
		n += collected(m.AheadBytes) // one file is read at a time
	}
	if m.Budget > 0 {
		n = min(n, m.Budget)
	}
	return n
}

// MemoryError reports that a memory budget is too small for the tables of a model with very many
// tensors.
type MemoryError struct {
	Need, Have       int64
	Tensors, Outputs int
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s of memory is too little for a model of %s tensors in %s output files: "+
		"at least %s are needed", human.Bytes(e.Have), human.Grouped(int64(e.Tensors)),
		human.Grouped(int64(e.Outputs)), human.BytesUp(e.Need))
}

// Check returns a MemoryError if the budget can't hold the tables of all tensors and outputs.
func (m Memory) Check(of *model.Model, p *plan.Plan) error {
	need := baseMemory + tables(of, p)
	if m.Budget == 0 || m.Budget >= need {
		return nil
	}
	return &MemoryError{need, m.Budget, nTensors(of), len(p.OutputFiles)}
}

// tables returns the size of everything known about each tensor and output.
func tables(m *model.Model, p *plan.Plan) int64 {
	var nBytes int64
	for _, w := range m.Listing.Weights {
		nBytes += int64(len(w.Header.Raw))
	}
	return safetensors.TableBytes(nBytes, int64(nTensors(m))) +
		outputMemory*int64(len(p.OutputFiles))
}

func nTensors(m *model.Model) (n int) {
	for _, w := range m.Listing.Weights {
		n += len(w.Header.Tensors)
	}
	return n
}
