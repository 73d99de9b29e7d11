package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/verify"
)

// TestRun measures everything once on few weights: every stage is there, on every path and number of cores, with figures
// that fit together, and no file stays.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var rounds []int
	r, err := Run(t.Context(), Options{Size: MinSize, Dir: dir, Budget: time.Nanosecond, Progress: func(n int) { rounds = append(rounds, n) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rounds, []int{0, 1}) || r.Rounds != 1 || r.CPU == "" || r.Cores != runtime.GOMAXPROCS(0) {
		t.Errorf("rounds %v, report %+v", rounds, r)
	}
	type line struct {
		stage, path string
		cores       int
	}
	var got, want []line
	for _, s := range r.Stages {
		got = append(got, line{s.Stage, s.Path, s.Cores})
		if s.GWeightsPerS <= 0 || s.GBPerS != 2*s.GWeightsPerS || s.RatioToNaive <= 0 || s.Stage == StageNaive && s.RatioToNaive != 1 {
			t.Errorf("impossible figures: %+v", s)
		}
	}
	for _, s := range []struct {
		stage string
		paths []string
	}{
		{"memory_read", []string{"go"}}, {"naive", []string{"go"}}, {"split_histogram", encoder.Variants()},
		{"encode", encoder.Variants()}, {"unit", encoder.Variants()}, {"verify", verify.Variants()}, {"sha256", []string{"go"}},
		{"file", encoder.Variants()}, {"file_verify", encoder.Variants()},
	} {
		for _, path := range s.paths {
			for _, n := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
				want = append(want, line{s.stage, path, n})
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("stages\n%v\nwant\n%v", got, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSchema pins the names that scripts read.
func TestSchema(t *testing.T) {
	b, err := json.Marshal(Report{Stages: []Stage{{}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"cpu":"","cores":0,"stages":[{"stage":"","path":"","cores":0,"gweights_per_s":0,"gb_per_s":0,"ratio_to_naive":0}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, size := range []int64{-1, 1, MinSize - 1, MaxSize + 1} {
		if _, err := Run(t.Context(), Options{Size: size}); err == nil {
			t.Errorf("size %d was accepted", size)
		}
	}
	if _, err := Run(t.Context(), Options{Size: MinSize, Dir: "/no/such/folder"}); err == nil {
		t.Error("a missing folder was accepted")
	}
}

// TestCancel stops at every measurement in turn.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Run(ctx, Options{Size: MinSize, Dir: dir, Progress: func(round int) {
		if round == 1 {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want the cause", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestWeights wants the same weights for any number of cores, and exponents as trained ones have them.
func TestWeights(t *testing.T) {
	const n = 1 << 20
	p := makeWeights(n)
	old := runtime.GOMAXPROCS(1)
	again := makeWeights(n)
	runtime.GOMAXPROCS(old)
	if !reflect.DeepEqual(p, again) {
		t.Error("the weights depend on the number of cores")
	}
	used := map[byte]bool{}
	for i := 0; i < len(p); i += 2 {
		used[byte(binary.LittleEndian.Uint16(p[i:])>>7)] = true
	}
	if len(used) < 16 || len(used) > 40 {
		t.Errorf("%d different exponents", len(used))
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
	}
}

// BenchmarkFile is the file stage with its verification, for profiles.
func BenchmarkFile(b *testing.B) {
	s, err := newFiles(b.TempDir(), makeWeights(DefaultSize))
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	for _, path := range encoder.Variants() {
		for _, verified := range []bool{false, true} {
			name := path
			if verified {
				name += "/verify"
			}
			b.Run(name, func(b *testing.B) {
				b.SetBytes(s.size)
				b.ReportAllocs()
				for b.Loop() {
					if err := s.convert(path, verified)(b.Context(), runtime.GOMAXPROCS(0)); err != nil {
						b.Fatal(err)
					}
					s.clean()
				}
			})
		}
	}
}
