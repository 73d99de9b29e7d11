package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/verify"
)

// proveUnchecked rebuilds every source file whose bytes never passed through sha256 as a whole, from the outputs as they
// are stored, and compares its hash with the published one.
func (r *run) proveUnchecked(ctx context.Context) error {
	r.freeBuffers()
	open := &outputFiles{run: r, files: map[string]openOutput{}}
	defer open.close()
	for _, fs := range r.files {
		if r.checkpointOf(fs).Integrity != "" {
			continue
		}
		want, err := r.published(ctx, fs)
		if err != nil {
			return err
		}
		d, err := open.model(ctx, fs)
		if err != nil {
			return fmt.Errorf("prove %s: %w", fs.path, err)
		}
		rebuilder := newRebuilder(d, newTasks(r.Plan), r.Workers)
		if err := rebuilder.prove(ctx, fs.path, r.Model.Plan.Weights[fs.index].Header, want); err != nil {
			return proofFailed(fs.path, err)
		}
		r.ledger.setFile(Checkpoint{File: fs.path, Integrity: integrityProof, SHA256: want})
		if err := r.saveJournal(); err != nil {
			return err
		}
		r.Log.Info("source file proved", "file", fs.path)
	}
	return nil
}

// published is the sha256 that a source file must have. Nobody publishes that of a local file: it is read for it.
func (r *run) published(ctx context.Context, fs *fileState) (string, error) {
	local, ok := r.Source.(localFiles)
	if fs.want != "" || !ok {
		if fs.want == "" {
			return "", fmt.Errorf("source file %s: no sha256 is published, so it can't be proved", fs.path)
		}
		return fs.want, nil
	}
	return sumLocal(ctx, local, fs.index, fs.path, fs.size)
}

// freeBuffers lets go what the Hub clients have made to fetch ahead: stages that follow one another share the memory.
func (r *run) freeBuffers() {
	if s, ok := r.Source.(remoteSource); ok {
		s.hubClient().FreeBuffers()
	}
	if r.Push != nil {
		r.Push.Hub.FreeBuffers()
	}
}

// outputFiles opens finished outputs: those in the store as they are, the others from the target repo, whole, each
// checked by its sha256. It holds only what the current source file needs, and what the disk budget has no room for is
// read by ranges: the source file's hash covers it.
type outputFiles struct {
	run    *run
	files  map[string]openOutput
	onDisk int64       // bytes of those that were brought back
	remote *hubReaders // nil until one is read by ranges
}

// openOutput is an output that can be read at random. fetched is what it takes of the disk.
type openOutput struct {
	io.ReaderAt
	close   func() error
	fetched int64
}

func (o *outputFiles) close() {
	o.keepOnly(nil)
	if o.remote != nil {
		_ = o.remote.Close()
	}
}

// keepOnly closes the outputs that are not among the names.
func (o *outputFiles) keepOnly(names map[string]bool) {
	for name, f := range o.files {
		if !names[name] {
			_ = f.close() // it was only read
			o.onDisk -= f.fetched
			delete(o.files, name)
		}
	}
}

// model is a DF11 model of just the outputs that a source file went into.
func (o *outputFiles) model(ctx context.Context, fs *fileState) (*DF11, error) {
	used := map[string]bool{}
	d := &DF11{files: map[string]df11File{}, tensors: map[string]stored{}}
	for _, s := range fs.segs {
		for _, to := range s.dst {
			used[to.task.path] = true
		}
	}
	o.keepOnly(used)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if err := o.add(ctx, d, name); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (o *outputFiles) add(ctx context.Context, d *DF11, name string) error {
	done, ok := o.run.ledger.output(name)
	if !ok {
		return fmt.Errorf("output %s is not finished", name)
	}
	f, err := o.open(ctx, done)
	if err != nil {
		return fmt.Errorf("output %s: %w", name, err)
	}
	h, err := safetensors.ReadHeader(f, done.Size)
	if err != nil {
		return wrongf(name, "%v", err)
	}
	d.files[name] = df11File{size: done.Size, sha256: done.SHA256, r: f, header: h}
	for _, t := range h.Tensors {
		d.tensors[t.Name] = stored{name, t}
	}
	return nil
}

func (o *outputFiles) open(ctx context.Context, done Output) (openOutput, error) {
	if f, ok := o.files[done.Path]; ok {
		return f, nil
	}
	f, err := o.openNew(ctx, done)
	if err != nil {
		return f, err
	}
	o.files[done.Path] = f
	o.onDisk += f.fetched
	return f, nil
}

func (o *outputFiles) openNew(ctx context.Context, done Output) (openOutput, error) {
	local, err := os.Open(o.run.store.path(done.Path))
	if err == nil {
		return openOutput{local, local.Close, 0}, nil
	}
	if o.run.pub == nil {
		return openOutput{}, err
	}
	p := o.run.pub
	ref := hub.FileRef{Repo: p.push.Repo, Commit: p.parent, Path: done.Path, Size: done.Size, SHA256: done.SHA256, NoCache: true}
	if limit := o.run.diskLimit; limit > 0 && o.onDisk+done.Size > limit {
		if o.remote == nil {
			o.remote = newHubReaders(ctx, p.push.Hub)
			if o.run.PieceMemory > 0 {
				o.remote.cache.setLimit(o.run.PieceMemory)
			}
		}
		return openOutput{o.remote.open(ref), func() error { return nil }, 0}, nil
	}
	s, err := o.fetch(ctx, ref)
	if err != nil {
		return openOutput{}, err
	}
	return openOutput{s, s.Release, done.Size}, nil
}

// fetch brings an output back from the target.
func (o *outputFiles) fetch(ctx context.Context, ref hub.FileRef) (*fileSpool, error) {
	in, err := openChecked(ctx, o.run.pub.push.Hub, ref)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := newFileSpool(o.run.store.state)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyBuffer(onlyWriter{s.f}, contextReader{ctx, in}, make([]byte, blockBytes)); err != nil {
		return nil, errors.Join(err, s.Release())
	}
	return s, nil
}

// proofFailed tells outputs that are wrong from a proof that could not run.
func proofFailed(file string, err error) error {
	wrong, structure := (*WrongError)(nil), (*verify.StructureError)(nil)
	if errors.As(err, &wrong) || errors.As(err, &structure) {
		return &ProofError{file, err}
	}
	return err
}
