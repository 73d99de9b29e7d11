package metadata

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
)

// check refuses a manifest that contradicts itself, or that names files a reader must not touch.
func (m *Manifest) check() error {
	if m.Schema != SchemaVersion {
		return fmt.Errorf("schema version %d, want %d", m.Schema, SchemaVersion)
	}
	if !names.IsSHA256(m.Plan.Digest) {
		return fmt.Errorf("plan digest %.70q isn't a SHA-256", m.Plan.Digest)
	}
	if err := (&Run{m.Tool.Version, m.Source.Commit}).check(); err != nil {
		return err
	}
	if err := m.Source.check(); err != nil {
		return err
	}
	files, err := m.checkOutputs()
	if err != nil {
		return err
	}
	for _, v := range m.Verification {
		for _, n := range []int64{v.NUnits, v.NTensors, v.NWeights, v.NExactF32} {
			if n < 0 || n > maxCount*maxObjects/2 {
				return fmt.Errorf("verification by %.70q counts %d", v.Method, n)
			}
		}
	}
	return m.checkUnits(files)
}

// check refuses what can't identify a run, because later manifests repeat it.
func (r *Run) check() error {
	switch {
	case r == nil:
	case len(r.Version) > 200:
		return fmt.Errorf("version %.100q of the program is too long", r.Version)
	case r.Commit != "" && !names.IsCommit(r.Commit):
		return fmt.Errorf("source commit %.100q isn't a commit id", r.Commit)
	}
	return nil
}

func (s *Source) check() error {
	if s.Repo != "" && (!names.IsRepo(s.Repo) || !strings.Contains(s.Repo, "/")) {
		return fmt.Errorf("source repo %.100q isn't a Hub id", s.Repo)
	}
	if len(s.Arranged) > 200 {
		return fmt.Errorf("class %.100q of the source is too long", s.Arranged)
	}
	seen := map[string]bool{}
	for _, f := range s.Files {
		if err := cmp.Or(checkFile(f.Path, f.Size, seen), f.check()); err != nil {
			return fmt.Errorf("source file %q: %w", f.Path, err)
		}
	}
	return nil
}

func (f SourceFile) check() error {
	switch {
	case !slices.Contains([]Integrity{Streamed, Proof, Earlier, Unchecked}, f.Integrity):
		return fmt.Errorf("unknown integrity %q", f.Integrity)
	case !names.IsSHA256(f.SHA256) && (f.SHA256 != "" || f.Integrity != Unchecked):
		return errors.New("malformed SHA-256")
	}
	return nil
}

// checkOutputs checks the output files and returns the kind of each.
func (m *Manifest) checkOutputs() (map[string]Kind, error) {
	seen, kinds := map[string]bool{}, map[string]Kind{}
	for _, f := range m.Outputs {
		if err := cmp.Or(checkFile(f.Path, f.Size, seen), f.check()); err != nil {
			return nil, fmt.Errorf("file %q: %w", f.Path, err)
		}
		kinds[f.Path] = f.Kind
	}
	return kinds, nil
}

func (f OutputFile) check() error {
	known := []Kind{KindUnit, KindRemainder, KindSingle, KindIndex, KindConfig, KindCard, KindImage,
		KindCopied}
	switch {
	case !names.IsSHA256(f.SHA256):
		return errors.New("malformed SHA-256")
	case !slices.Contains(known, f.Kind):
		return fmt.Errorf("unknown kind %q", f.Kind)
	}
	return f.Earlier.check()
}

func (m *Manifest) checkUnits(files map[string]Kind) error {
	seen := map[string]bool{}
	for _, u := range m.Units {
		if seen[u.Path] {
			return fmt.Errorf("unit %q is listed twice", u.Path)
		}
		seen[u.Path] = true
		if k := files[u.File]; k != KindUnit && k != KindSingle {
			return fmt.Errorf("unit %q: its file %q isn't listed as a file with units", u.Path,
				u.File)
		}
		if err := u.check(); err != nil {
			return fmt.Errorf("unit %q: %w", u.Path, err)
		}
	}
	return nil
}

func (u Unit) check() error {
	if u.Status != DF11 && u.Status != BF16 {
		return fmt.Errorf("unknown status %q", u.Status)
	}
	var n int64
	for _, t := range u.Tensors {
		size, err := nElems(t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if n += size; n > maxCount {
			return fmt.Errorf("tensors have more than %d weights", int64(maxCount))
		}
	}
	if u.CodedBits < 0 || u.CodedBits > maxCount {
		return fmt.Errorf("%d bits", u.CodedBits)
	}
	if n != u.NWeights {
		return fmt.Errorf("tensors have %d weights, unit says %d", n, u.NWeights)
	}
	return nil
}

// maxCount bounds the weights and bits of a unit and the bytes of a file. A manifest has at most
// maxObjects of them, so sums stay below 2^63.
const maxCount = 1 << 43

// NElems returns the number of weights. It's 0 for a shape that no parsed manifest has.
func (t UnitTensor) NElems() int64 {
	n, _ := nElems(t.Shape)
	return n
}

// nElems returns the product of a shape, at most maxCount.
func nElems(shape []int64) (int64, error) {
	n := int64(1)
	for _, dim := range shape {
		if dim < 0 || dim > maxCount || dim != 0 && n > maxCount/dim {
			return 0, fmt.Errorf("bad shape %v", shape)
		}
		n *= dim
	}
	return n, nil
}

// checkFile refuses impossible sizes, repeated paths, and paths that aren't safe on every system.
func checkFile(name string, size int64, seen map[string]bool) error {
	if !names.IsSafe(name) {
		return errors.New("its path isn't safe inside a repo")
	}
	if seen[name] {
		return errors.New("it is listed twice")
	}
	seen[name] = true
	if size < 0 || size > maxCount {
		return fmt.Errorf("size %d", size)
	}
	return nil
}
