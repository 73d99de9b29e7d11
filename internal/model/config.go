package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// readConfig finds the config.json with dfloat11_config: at the root, else in the one folder that has it.
func (d *DF11) readConfig(ctx context.Context) error {
	var found []string
	var plain error
	for _, name := range d.configs() {
		if len(found) > 0 && found[0] == "config.json" {
			break
		}
		b, err := d.from.read(ctx, name)
		if err != nil {
			return err
		}
		dict, err := DictOfConfig(b)
		switch {
		case errors.Is(err, errNoDF11Config):
			plain = cmp.Or(plain, Invalidf(name, "%v", err))
		case err != nil:
			return Invalidf(name, "%v", err)
		default:
			d.Dict, d.Dir = dict, strings.TrimSuffix(strings.TrimSuffix(name, "config.json"), "/")
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		return fmt.Errorf("%d folders hold a DF11 model (%s): name one of them", len(found), strings.Join(found, ", "))
	}
	if _, atRoot := d.open["config.json"]; len(found) == 0 && atRoot {
		return plain
	}
	return nil
}

// configs lists the files that may be the config.json of a DF11 model: that at the root, then those of folders in it which
// hold weights.
func (d *DF11) configs() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.open)) {
		dir, base := path.Split(name)
		if base == "config.json" && (dir == "" || strings.Count(dir, "/") == 1 && len(d.weightFiles(path.Clean(dir))) > 0) {
			names = append(names, name)
		}
	}
	if i := slices.Index(names, "config.json"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "config.json")
	}
	return names
}

// errNoDF11Config says that a config.json is not that of a DF11 model.
var errNoDF11Config = errors.New("no dfloat11_config: not a finished DF11 model")

// DictOfConfig takes dfloat11_config.pattern_dict out of a config.json, order kept.
func DictOfConfig(b []byte) (plan.PatternDict, error) {
	var c struct {
		DF11 *struct {
			Threads []int           `json:"threads_per_block"`
			Bytes   int             `json:"bytes_per_thread"`
			Dict    json.RawMessage `json:"pattern_dict"`
		} `json:"dfloat11_config"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	if c.DF11 == nil {
		return nil, errNoDF11Config
	}
	if !slices.Equal(c.DF11.Threads, []int{512}) || c.DF11.Bytes != 8 {
		return nil, fmt.Errorf("threads_per_block %v and bytes_per_thread %d, want [512] and 8", c.DF11.Threads, c.DF11.Bytes)
	}
	return plan.ParsePatternDict(c.DF11.Dict)
}

// cardBaseModel reads base_model of a card's front matter, which may be a string or a list.
func cardBaseModel(card map[string]any) string {
	switch b := card["base_model"].(type) {
	case string:
		return b
	case []any:
		if len(b) == 1 {
			s, _ := b[0].(string)
			return s
		}
	}
	return ""
}
