// Package compare compares outputs with their source, bit for bit, from the stored bytes. It
// fetches no source and makes no output.
package compare

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Stored is an output file as stored, or a model that has the output's tensors.
type Stored interface {
	// Coded reports whether a unit is stored as DF11. Otherwise its weights are stored unchanged.
	Coded(unitPath string) bool
	// Section returns the bytes of a stored tensor, and false if there is no tensor of that name.
	Section(name string) (*io.SectionReader, bool)
}

// Means are what a run works with.
type Means struct {
	Workers  int // goroutines that compute
	GPU      GPU // a second decoder; nil: none
	Progress *progress.Counters
}

// Complete sets defaults: one worker, and counters that no one reads.
func (m *Means) Complete() {
	m.Workers = max(1, m.Workers)
	if m.Progress == nil {
		m.Progress = new(progress.Counters)
	}
}

// A Comparer compares outputs with their source. One goroutine uses it; the work inside is
// parallel.
type Comparer struct {
	Means
	Strict bool // for our own output: bytes that decoding never reads must be right, too
	// NearDir takes copies of remote units, so that the CPU and the GPU fetch them only once. It's
	// nil if the stored model is on this machine.
	NearDir *os.Root
}

// Output compares everything that is stored of an output with its source, in the order of its
// spool: all 16 bits of every weight of its units, every byte of its copied tensors, and its
// aliases with the tensors they equal, as the source has them: that what is stored of those decodes
// to the same bits is compared before. It reads every byte of the source once. Another reader of
// the same bytes, again, serves what needs them a second time: the GPU, and tensors with aliases. It
// ends at the first difference, with a *verify.MismatchError, *TensorError, or *spans.AliasError. If
// there is nothing to compare, the error is a *verify.StructureError or *model.InvalidError. It
// returns what each decoder verified.
func (c *Comparer) Output(ctx context.Context, o *spans.Output, stored Stored,
	source, again io.ReaderAt) ([]metadata.Verification, error) {
	gpu := metadata.Verification{Method: metadata.MethodGPU}
	for _, u := range o.Units {
		second, err := c.unit(ctx, u, stored, source, again)
		if err != nil {
			return nil, err
		}
		if second {
			count(&gpu, u, true)
		}
	}
	for _, t := range o.Copied {
		if err := c.tensor(ctx, t, stored, source); err != nil {
			return nil, err
		}
	}
	for _, a := range o.Aliases {
		if err := alias(ctx, a, source, again); err != nil {
			return nil, err
		}
	}
	verified := []metadata.Verification{ByCPU(o, stored.Coded)}
	if gpu.NUnits > 0 {
		gpu.Decoder, gpu.Device = c.GPU.Describe()
		verified = append(verified, gpu)
	}
	return verified, nil
}

// cpuDecoder names the decoder that always runs.
const cpuDecoder = "df11-convert, package verify: " +
	"windows, gaps, tables and output positions as the GPU kernel walks them"

// ByCPU returns what is verified about an output once the CPU has decoded it and found its weights
// equal to the source's, by comparing either the weights or the hash of the rebuilt file. coded
// reports whether a unit is stored as DF11.
func ByCPU(o *spans.Output, coded func(unitPath string) bool) metadata.Verification {
	v := metadata.Verification{Method: metadata.MethodCPU, Decoder: cpuDecoder,
		NTensors: int64(len(o.Copied))}
	for _, u := range o.Units {
		count(&v, u, coded(u.Path))
		for _, t := range u.Attrs {
			if t.ExactF32 {
				v.NExactF32 += t.NElems()
			}
		}
	}
	return v
}

// count adds a unit to v.
func count(v *metadata.Verification, u *spans.Unit, coded bool) {
	if coded {
		v.NUnits++
		v.NWeights += u.NElems()
	}
	v.NTensors += int64(len(u.Attrs))
}

// TensorError names the first different byte of a tensor that is stored unchanged.
type TensorError struct {
	Tensor string
	Byte   int64
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("tensor %s: byte %d is not the source's", e.Tensor, e.Byte)
}

// Subject returns model.OfPair.
func (e *TensorError) Subject() string { return model.OfPair }

// tensor compares a tensor that is stored unchanged.
func (c *Comparer) tensor(ctx context.Context, t spans.Tensor, stored Stored,
	source io.ReaderAt) error {
	n := t.SpoolBytes()
	s, ok := stored.Section(t.Name)
	if !ok || s.Size() != n {
		return model.Invalidf("", "tensor %s is missing, or has another size", t.Name)
	}
	at, err := streams.FirstDifference(ctx, s, io.NewSectionReader(source, t.At, n), n)
	if err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	if at >= 0 {
		return &TensorError{t.Name, at}
	}
	c.Progress.Verified.Add(n)
	return nil
}

// alias compares an alias with the tensor it must equal. Both are in the spool.
func alias(ctx context.Context, a spans.Alias, source, again io.ReaderAt) error {
	n, of := a.SpoolBytes(), a.Of.SpoolBytes()
	if n != of {
		return &spans.AliasError{Name: a.Name, Of: a.Of.Name, Byte: min(n, of)}
	}
	at, err := streams.FirstDifference(ctx, io.NewSectionReader(source, a.At, n),
		io.NewSectionReader(again, a.Of.At, n), n)
	if err != nil {
		return fmt.Errorf("compare %s with %s: %w", a.Name, a.Of.Name, err)
	}
	if at >= 0 {
		return &spans.AliasError{Name: a.Name, Of: a.Of.Name, Byte: at}
	}
	return nil
}
