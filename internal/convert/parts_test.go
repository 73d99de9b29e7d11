package convert_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// part makes a run convert one of several parts.
func part(i, n int) func(*convert.Options) {
	return func(o *convert.Options) { o.Part = spans.Part{I: i, N: n} }
}

// inPart is how a run by ranges, for one part of one, differs from a whole one.
var inPart = part(1, 1)

func finishing(o *convert.Options) { o.Finish = true }

// TestPartsGiveTheSameRepo checks that two parts and a finish, or a run of the whole, make the
// bytes of one run. Only the manifest differs in one word: the source files were proved, not
// streamed. The last run makes no unit.
func TestPartsGiveTheSameRepo(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	for _, last := range []func(*convert.Options){finishing, func(*convert.Options) {}} {
		w := newWorld(t, small())
		for i := 1; i <= 2; i++ {
			w.mustConvert(t, part(i, 2))
			w.unfinished(t)
		}
		if r := w.mustConvert(t, last); r.Made.Now != 1 || r.Made.Seconds <= 0 {
			t.Errorf("the last run made %d files in %f s", r.Made.Now, r.Made.Seconds)
		}
		sameFiles(t, w.target(), want)
		for _, f := range w.manifest(t).Source.Files {
			if f.Integrity != metadata.Proof {
				t.Errorf("%s is said to be %s", f.Path, f.Integrity)
			}
		}
	}
}

// TestNoMorePartsThanUnits checks that neither the name of a journal in the target nor an option
// can take memory for millions of parts.
func TestNoMorePartsThanUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	w.AddRepo(targetRepo, map[string][]byte{fmt.Sprintf(".df11/part-1-of-%d.json", spans.MaxParts+1): []byte("{}")})
	_, finish := w.convert(t.Context(), t, t.TempDir(), finishing)
	_, part := w.convert(t.Context(), t, t.TempDir(), part(1, spans.MaxParts+1))
	for _, err := range []error{finish, part} {
		if err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("got %v", err)
		}
	}
}

// TestPartsOfTwoFolders checks the finishing run of parts that other machines made of a folder with
// one other bit. It doesn't own them. If the bit is where no sample of a weight file is, it makes
// the wrong outputs again.
func TestPartsOfTwoFolders(t *testing.T) {
	t.Parallel()
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 256, Vocab: 4096, Layers: 1, Extra: hubtest.OwnPicture})
	for fromEnd, sampled := range map[int]bool{1: true, 100: false} {
		dir, w, want := writeModel(t, m), newWorld(t, nil), newWorld(t, nil)
		sample := func() string {
			_, known, err := model.OpenLocal(t.Context(), dir, plan.Options{}, 0)
			shared.Must(t, err)
			return known.Listing.Weights[0].ETag
		}
		shared.Must(t, w.pushLocal(t, dir, part(1, 2)))
		shared.Must(t, w.pushLocal(t, dir, part(2, 2)))
		before, name := sample(), filepath.Join(dir, m.Weights[0].Path)
		b := shared.Read(t, name)
		b[len(b)-fromEnd] ^= 1
		shared.Write(t, name, b)
		if sample() == before == sampled {
			t.Fatalf("%d bytes from the end is in the sample: %v", fromEnd, !sampled)
		}
		if err := w.pushLocal(t, dir, finishing); sampled {
			foreign(t, err, "lm_head.safetensors")
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		shared.Must(t, want.pushLocal(t, dir))
		sameFiles(t, w.target(), want.target())
	}
}

// pushLocal converts a folder to the target.
func (w *world) pushLocal(t *testing.T, dir string, change ...func(*convert.Options)) error {
	t.Helper()
	to := func(o *convert.Options) { push(o).Repo = targetRepo }
	_, err := convertWith(t.Context(), t, w.client(t), dir, plan.Options{}, slices.Concat([]func(*convert.Options){to}, change)...)
	return err
}

// TestFinishWantsAllParts checks that finish names a missing part. A part of another split counts
// for the outputs that it made, and its journal is removed with the others.
func TestFinishWantsAllParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	w.mustConvert(t, part(2, 3))
	_, err := w.convert(t.Context(), t, t.TempDir(), finishing)
	var missing convert.PartsError
	if !errors.As(err, &missing) || len(missing) != 2 || !strings.HasPrefix(missing[0], "part 1 of 3") || !strings.HasPrefix(missing[1], "part 3 of 3") {
		t.Fatalf("got %v, want parts 1 and 3 missing", err)
	}
	for _, x := range []func(*convert.Options){part(1, 2), part(3, 3), part(1, 3), finishing} {
		w.mustConvert(t, x)
	}
	sameFiles(t, w.target(), reference(t, small()))
}

// TestSmallDiskIsToldWhatItNeeds checks that a disk without space for the spools of streamed files
// is refused before any weight moves, with the size that is needed. With that size, with more, or
// with spools in memory, the repo is the same.
func TestSmallDiskIsToldWhatItNeeds(t *testing.T) {
	t.Parallel()
	scattered := layoutModel(hubtest.OrderScattered, 60_000)
	want, w := reference(t, scattered), newWorld(t, scattered)
	small := func(disk, memory int64) func(*convert.Options) {
		return func(o *convert.Options) { o.Disk, o.Memory.Spools = disk, memory }
	}
	const disk = 1_300_000
	tooSmall := (*budget.DiskError)(nil)
	if _, err := w.convert(t.Context(), t, t.TempDir(), small(disk, 0)); !errors.As(err, &tooSmall) || tooSmall.Need <= disk {
		t.Fatalf("%d bytes of disk: %v", disk, err)
	}
	if n := w.sourceBytes(); n > scattered.Size() {
		t.Errorf("%d bytes were read for nothing", n)
	}
	for disk, memory := range map[int64]int64{tooSmall.Need: 0, disk: 64 << 20, 100_000_000: 64 << 20} {
		w := newWorld(t, scattered)
		w.mustConvert(t, small(disk, memory))
		sameFiles(t, w.target(), want)
	}
}
