package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/verify"
)

// A prover rebuilds source files from the outputs as they are stored. It holds only the outputs that the current source file
// needs: those in the folder as they are, the others from the target repo, whole, each checked by its sha256. What the disk
// budget has no room for is read by ranges: the source file's hash covers it.
type prover struct {
	model   *model.Model
	source  model.Source
	folder  *target.Folder
	repo    *target.Repo // nil: every output is in the folder
	ledger  *ledger.Ledger
	outputs []*spans.Output
	workers int
	disk    int64 // for outputs that come back; 0: no bound
	pieces  int64 // memory for what is read by ranges

	open   map[string]openOutput
	onDisk int64          // bytes of outputs that were brought back
	remote *model.Readers // nil until an output is read by ranges
}

// openOutput is an output that can be read at random. fetched is what it takes of the disk.
type openOutput struct {
	io.ReaderAt
	close   func() error
	fetched int64
}

// proveUnchecked rebuilds every source file whose bytes never passed through sha256 as a whole, and compares its hash with the
// published one.
func (c *conversion) proveUnchecked(ctx context.Context) error {
	c.freeBuffers()
	p := &prover{
		model: c.Model, source: c.Source, folder: c.folder, repo: c.repo, ledger: c.ledger, outputs: c.outputs,
		workers: c.Workers, disk: c.disk, pieces: c.PieceMemory, open: map[string]openOutput{},
	}
	defer p.close()
	for _, f := range c.files {
		if _, known := c.ledger.File(f.Path); known {
			continue
		}
		if err := p.prove(ctx, f); err != nil {
			return err
		}
		c.Log.Info("source file verified", "file", f.Path)
	}
	return nil
}

func (p *prover) prove(ctx context.Context, f *fetch.File) error {
	want := f.Want
	if want == "" { // nobody publishes the sum of a local file: it is read for it
		var err error
		if want, err = fetch.Sum(ctx, p.source, f.Index, f.Path, f.Size); err != nil {
			return err
		}
	}
	d, err := p.assemble(ctx, f)
	if err == nil {
		rebuilder := proof.NewRebuilder(d, p.outputs, p.workers)
		err = rebuilder.Prove(ctx, f.Path, p.model.Listing.Weights[f.Index].Header, want)
	}
	invalid, structure := (*model.InvalidError)(nil), (*verify.StructureError)(nil)
	switch {
	case err == nil:
		return p.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: want})
	case errors.As(err, &invalid) || errors.As(err, &structure): // outputs are wrong; else the proof could not run
		return &ProofError{f.Path, err}
	}
	return fmt.Errorf("verify %s: %w", f.Path, err)
}

func (p *prover) close() {
	p.keepOnly(nil)
	if p.remote != nil {
		_ = p.remote.Close()
	}
}

// keepOnly closes the outputs that are not among the names.
func (p *prover) keepOnly(names map[string]bool) {
	for name, f := range p.open {
		if !names[name] {
			_ = f.close() // it was only read
			p.onDisk -= f.fetched
			delete(p.open, name)
		}
	}
}

// model is a DF11 model of just the outputs that a source file went into.
func (p *prover) assemble(ctx context.Context, f *fetch.File) (*model.DF11, error) {
	used, names := spans.UsedBy(f.Segments), map[string]bool{}
	for _, x := range used {
		names[x.Path] = true
	}
	p.keepOnly(names)
	var files []model.OpenFile
	for _, x := range used {
		done, ok := p.ledger.Output(x.Path)
		if !ok {
			return nil, fmt.Errorf("output %s is not finished", x.Path)
		}
		r, err := p.openOutput(ctx, done)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", x.Path, err)
		}
		files = append(files, model.OpenFile{Path: done.Path, Size: done.Size, SHA256: done.SHA256, ReaderAt: r})
	}
	return model.Assemble(ctx, files)
}

func (p *prover) openOutput(ctx context.Context, done ledger.Output) (io.ReaderAt, error) {
	if f, ok := p.open[done.Path]; ok {
		return f, nil
	}
	f, err := p.openNew(ctx, done)
	if err != nil {
		return nil, err
	}
	p.open[done.Path] = f
	p.onDisk += f.fetched
	return f, nil
}

func (p *prover) openNew(ctx context.Context, done ledger.Output) (openOutput, error) {
	local, err := os.Open(p.folder.Path(done.Path))
	if err == nil {
		return openOutput{local, local.Close, 0}, nil
	}
	if p.repo == nil {
		return openOutput{}, err
	}
	if p.disk > 0 && p.onDisk+done.Size > p.disk {
		if p.remote == nil {
			p.remote = model.NewReaders(ctx, p.repo.Hub, p.pieces)
		}
		return openOutput{p.remote.Open(p.repo.Ref(done)), func() error { return nil }, 0}, nil
	}
	s, err := p.fetch(ctx, done)
	if err != nil {
		return openOutput{}, err
	}
	return openOutput{s, s.Release, done.Size}, nil
}

// fetch brings an output back from the target.
func (p *prover) fetch(ctx context.Context, done ledger.Output) (*spool.Temp, error) {
	in, err := p.repo.Open(ctx, done)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := spool.NewTemp(p.folder.State)
	if err != nil {
		return nil, err
	}
	if _, err := streams.Copy(ctx, io.NewOffsetWriter(s, 0), in); err != nil {
		return nil, errors.Join(err, s.Release())
	}
	return s, nil
}
