package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Experts of a model: 805,306,368 weights in all.
const nExperts, nRows, nColumns = 64, 3072, 4096

// writeExperts writes the same weights twice: in dir/fused as one tensor of all experts, with a dict
// that makes it one unit, and in dir/separate as a tensor and a unit for each expert.
func writeExperts(dir string) error {
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	const module, size = "model.layers.0.mlp.experts", int64(2 * nRows * nColumns)
	fused := map[string]entry{
		module + ".up_proj": {"BF16", []int{nExperts, nRows, nColumns}, [2]int64{0, nExperts * size}},
	}
	separate := map[string]entry{}
	for i := range int64(nExperts) {
		separate[fmt.Sprintf("%s.%d.up_proj.weight", module, i)] =
			entry{"BF16", []int{nRows, nColumns}, [2]int64{i * size, (i + 1) * size}}
	}
	return errors.Join(
		writeModel(filepath.Join(dir, "fused"), fused, `model\.layers\.0\.mlp\.experts`),
		writeModel(filepath.Join(dir, "separate"), separate, `model\.layers\.0\.mlp\.experts\.\d+`))
}

// writeModel writes a checkpoint with one weight file, and next to its folder a dict for it.
func writeModel(dir string, header any, pattern string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	dict, err := json.Marshal(map[string][]string{pattern: {"up_proj"}})
	if err != nil {
		return err
	}
	for path, data := range map[string][]byte{
		filepath.Join(dir, "config.json"): []byte(`{"model_type": "new"}`), dir + ".json": dict,
	} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	err = binary.Write(w, binary.LittleEndian, int64(len(head)))
	_, err2 := w.Write(head)
	weights := normal(1 << 24)
	for range nExperts * nRows * nColumns / (1 << 24) {
		_, err3 := w.Write(weights)
		err2 = errors.Join(err2, err3)
	}
	return errors.Join(err, err2, w.Flush(), f.Close())
}

// normal returns n BF16 weights of a normal distribution, as trained ones have.
func normal(n int) []byte {
	r, out := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 2*n)
	for range n {
		bits := math.Float32bits(float32(0.02 * r.NormFloat64()))
		out = binary.LittleEndian.AppendUint16(out, uint16(bits>>16))
	}
	return out
}
