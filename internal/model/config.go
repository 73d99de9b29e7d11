package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// readConfig finds the config.json with dfloat11_config: at the root, or else in the one folder
// that has it.
func (d *DF11) readConfig(ctx context.Context) error {
	var found []string
	var atRoot error // what is wrong with the root's config.json
	for _, ref := range d.configs() {
		b, err := d.read(ctx, ref.Path, maxConfigBytes)
		if err != nil {
			return err
		}
		dict, err := DictOfConfig(b)
		switch isRoot := ref.Path == names.Config; {
		case err == nil:
			d.Dict, d.Dir = dict, strings.TrimSuffix(ref.Path[:len(ref.Path)-len(names.Config)], "/")
			if isRoot {
				return nil
			}
			found = append(found, ref.Path)
		case !errors.Is(err, ErrNoDF11Config):
			return Invalidf(ref.Path, "%v", err)
		case isRoot:
			atRoot = fmt.Errorf("%s: %w", ref.Path, err)
		}
	}
	switch len(found) {
	case 0:
		if _, made := d.File(names.Manifest); made && atRoot != nil {
			return Invalidf("", "%v", atRoot)
		}
		return atRoot
	case 1:
		return d.aloneIn(d.Dir)
	}
	return fmt.Errorf("%d folders hold a DF11 model (%s): name one of them", len(found),
		strings.Join(found, ", "))
}

// aloneIn refuses a repo with the DF11 model in a folder and another model at the root. A loader
// that opens the repo takes the one at the root.
func (d *DF11) aloneIn(dir string) error {
	for _, ref := range d.list {
		if !strings.Contains(ref.Path, "/") && reader.IsLoaded(ref.Path) {
			return Invalidf(ref.Path, "another model next to the DF11 model, which is in %s", dir)
		}
	}
	return nil
}

// configs returns the files that may be the config.json of a DF11 model: first the root's, then
// those of its folders.
func (f *files) configs() (configs []plan.File) {
	for _, file := range f.list {
		dir, name := path.Split(file.Path)
		if name == names.Config && strings.Count(dir, "/") < 2 {
			configs = append(configs, file)
		}
	}
	slices.SortStableFunc(configs, func(a, b plan.File) int { return len(a.Path) - len(b.Path) })
	return configs
}

// ErrNoDF11Config means that something isn't a DF11 model, such as an original.
var ErrNoDF11Config = errors.New("no dfloat11_config, so this isn't a finished DF11 model")

// DictOfConfig returns dfloat11_config.pattern_dict of a config.json, in its order.
func DictOfConfig(b []byte) (catalog.PatternDict, error) {
	var c struct {
		DF11 *struct {
			Threads []int           `json:"threads_per_block"`
			Bytes   int             `json:"bytes_per_thread"`
			Dict    json.RawMessage `json:"pattern_dict"`
		} `json:"dfloat11_config"`
	}
	if err := python.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	members, _, _ := python.Members(b) // none if b isn't an object
	n := 0
	for _, m := range members {
		if m.Key == "dfloat11_config" {
			n++
		}
	}
	if n > 1 { // readers take the last, and no tool writes two
		return nil, errors.New("dfloat11_config appears twice")
	}
	if c.DF11 == nil {
		return nil, ErrNoDF11Config
	}
	if !slices.Equal(c.DF11.Threads, []int{512}) || c.DF11.Bytes != 8 {
		return nil, fmt.Errorf("threads_per_block %v and bytes_per_thread %d, want [512] and 8",
			c.DF11.Threads, c.DF11.Bytes)
	}
	return catalog.ParsePatternDict(c.DF11.Dict)
}
