// Outside uses the four packages of df11-convert as another program would: it converts a model of two
// tensors into a folder, verifies it, decodes it, and asks a Hub that isn't there.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

func main() {
	dir, err := os.MkdirTemp("", "outside-")
	must(err)
	defer os.RemoveAll(dir)
	codec(weights(5000))
	convert(dir)
	ask()
	fmt.Println("the four packages work from outside")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func weights(n int) (bf16 []byte) {
	for i := range n {
		w := float32(0.02 * math.Sin(float64(i*i)))
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(math.Float32bits(w)>>16))
	}
	return bf16
}

type memory []byte

func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// codec encodes weights, and compares the arrays with them.
func codec(bf16 []byte) {
	n := int64(len(bf16) / 2)
	c, err := encoder.NewCounter([]int64{n})
	must(err)
	c.Add(0, bf16)
	u, err := c.Finish()
	must(err)
	stored := map[string]memory{}
	for _, t := range u.Tensors() {
		stored[t.Name] = make(memory, t.NBytes)
	}
	if !slices.Equal(encoder.ArrayNames(), verify.ArrayNames()) {
		log.Fatalf("%q, %q", encoder.ArrayNames(), verify.ArrayNames())
	}
	must(u.Encode(context.Background(), bytes.NewReader(bf16),
		func(name string) io.WriterAt { return stored[name] }, 2))
	opened, err := verify.Open(verify.ArraysAt(func(name string) *io.SectionReader {
		return io.NewSectionReader(bytes.NewReader(stored[name]), 0, int64(len(stored[name])))
	}), []int64{n})
	must(err)
	must(opened.Compare(context.Background(), bytes.NewReader(bf16), verify.CompareOptions{}))
	stored[verify.NameSignMantissa][9] ^= 1
	var wrong *verify.MismatchError
	if err := opened.Compare(context.Background(), bytes.NewReader(bf16),
		verify.CompareOptions{}); !errors.As(err, &wrong) || wrong.Elem != 9 {
		log.Fatal(err)
	}
}

// convert writes a model, converts, verifies, and decodes it.
func convert(dir string) {
	source := filepath.Join(dir, "model")
	must(os.Mkdir(source, 0o777))
	w := weights(2 * 64 * 64)
	type tensor struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header, err := json.Marshal(map[string]tensor{
		"model.layers.0.mlp.up_proj.weight":   {"BF16", []int{64, 64}, [2]int{0, len(w) / 2}},
		"model.layers.0.mlp.down_proj.weight": {"BF16", []int{64, 64}, [2]int{len(w) / 2, len(w)}},
	})
	must(err)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	must(os.WriteFile(filepath.Join(source, "model.safetensors"), append(file, w...), 0o666))
	must(os.WriteFile(filepath.Join(source, "config.json"),
		[]byte(`{"model_type": "outside", "architectures": ["OutsideForCausalLM"]}`), 0o666))
	dict := filepath.Join(dir, "dict.json")
	must(os.WriteFile(dict, []byte(`{"model\\.layers\\.\\d+": ["mlp.up_proj", "mlp.down_proj"]}`), 0o666))

	ctx := context.Background()
	phases := map[string]bool{}
	means := pipeline.Means{GPU: verify.GPUOff, Progress: func(p pipeline.Progress) { phases[p.Phase] = true }}
	recipe := pipeline.Recipe{PatternDict: dict, Unfilled: true}
	folder := filepath.Join(dir, "df11")
	forecast, err := pipeline.Plan(ctx, source,
		pipeline.PlanOptions{Options: pipeline.Options{Means: means, Recipe: recipe}})
	must(err)
	made, err := pipeline.Convert(ctx, source,
		pipeline.Options{Means: means, Recipe: recipe, Folder: folder})
	must(err)
	if made.Sizes.Units != len(forecast.Units) || made.Sizes.Units != 1 || len(phases) == 0 {
		log.Fatalf("%+v, %+v, %v", made, forecast, phases)
	}
	equal, err := pipeline.Verify(ctx, folder, pipeline.VerifyOptions{Means: means, Against: source})
	must(err)
	if !equal.Equal.Shown() {
		log.Fatalf("%+v", equal)
	}
	again, err := pipeline.Decode(ctx, folder,
		pipeline.DecodeOptions{Means: means, Folder: filepath.Join(dir, "again")})
	must(err)
	before, err := os.ReadFile(filepath.Join(source, "model.safetensors"))
	must(err)
	after, err := os.ReadFile(filepath.Join(again.Folder, "model.safetensors"))
	must(err)
	if !bytes.Equal(before, after) {
		log.Fatal("decoded to other bytes")
	}
	_, err = pipeline.Convert(ctx, source, pipeline.Options{Means: means, Repo: "no/push"})
	var e *pipeline.Error
	if !errors.Is(err, pipeline.ErrUsage) || !errors.As(err, &e) {
		log.Fatal(err)
	}
}

// ask asks a Hub while it's offline.
func ask() {
	c, err := hub.New(hub.Options{Connection: hub.Connection{Offline: true}})
	must(err)
	var e *hub.Error
	if _, err := c.Info(context.Background(), "org/model", ""); !errors.Is(err, hub.ErrOffline) || !errors.As(err, &e) {
		log.Fatal(err)
	}
}
