package hubtest

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"path"
	"strings"
)

// parameters counts the parameters by dtype over all safetensors files of a commit, as the hub shows them; nil when there
// are none.
func (s *objects) parameters(c *commit) map[string]any {
	params, total := map[string]int64{}, int64(0)
	for p, e := range c.files {
		if path.Ext(p) != ".safetensors" || strings.Contains(p, "/") || !e.isLFS() {
			continue
		}
		o := s.get(e.sha256)
		if o == nil || o.body == nil {
			continue
		}
		for dtype, n := range countParameters(o.body, o.size) {
			params[dtype] += n
			total += n
		}
	}
	if total == 0 {
		return nil
	}
	return map[string]any{"parameters": params, "total": total}
}

// countParameters reads a safetensors header; what cannot be read counts nothing.
func countParameters(body io.ReaderAt, size int64) map[string]int64 {
	var first [8]byte
	if _, err := body.ReadAt(first[:], 0); err != nil {
		return nil
	}
	n := int64(binary.LittleEndian.Uint64(first[:]))
	if n <= 0 || n > min(size-8, 100<<20) {
		return nil
	}
	raw := make([]byte, n)
	if _, err := body.ReadAt(raw, 8); err != nil && err != io.EOF {
		return nil
	}
	var header map[string]struct {
		DType string  `json:"dtype"`
		Shape []int64 `json:"shape"`
	}
	if json.Unmarshal(raw, &header) != nil {
		return nil
	}
	out := map[string]int64{}
	for name, t := range header {
		if name == "__metadata__" {
			continue
		}
		elems := int64(1)
		for _, d := range t.Shape {
			elems *= d
		}
		out[t.DType] += elems
	}
	return out
}
