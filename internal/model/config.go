package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
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
	for i, ref := range d.configs() {
		if i == maxConfigs {
			return fmt.Errorf("more than %d folders have a config.json, so this isn't one DF11 model",
				maxConfigs)
		}
		if err := fits(ref, maxConfigBytes); err != nil {
			return err
		}
		b, err := d.small(ctx, ref.Path, maxConfigBytes)
		if err != nil {
			return err
		}
		config, err := ParseConfig(b)
		switch isRoot := ref.Path == names.Config; {
		case err == nil:
			d.Config, d.Dir = config, strings.TrimSuffix(ref.Path[:len(ref.Path)-len(names.Config)], "/")
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

// maxConfigs bounds the folders in which a DF11 model is looked for. The largest pipelines have about
// ten parts.
const maxConfigs = 100

// aloneIn refuses a repo with the DF11 model in a folder and another model at the root. A loader
// that opens the repo takes the one at the root. On this machine, a folder in it with a manifest of
// its own is a result that someone made inside the source.
func (d *DF11) aloneIn(dir string) error {
	var loaded []string
	for _, ref := range d.list {
		if !strings.Contains(ref.Path, "/") && reader.IsLoaded(ref.Path) {
			loaded = append(loaded, ref.Path)
		}
	}
	if len(loaded) == 0 {
		return nil
	}
	_, whole := d.File(path.Join(dir, names.Manifest))
	if at := slices.IndexFunc(loaded, reader.IsSafetensors); whole && at >= 0 && d.folder != "" {
		return &InsideError{Model: loaded[at], Dir: dir}
	}
	return Invalidf(loaded[0], "another model next to the DF11 model, which is in %s", dir)
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
var ErrNoDF11Config = errors.New("it has no dfloat11_config, so it isn't a finished DF11 model")

// An InsideError says that something isn't a DF11 model, but that a folder in it is one.
type InsideError struct {
	Model string // the file of the other model
	Dir   string
}

func (e *InsideError) Error() string {
	return fmt.Sprintf("its model is %s, which isn't DF11; its folder %s is a DF11 model of its own", e.Model, e.Dir)
}

// Is makes it an ErrNoDF11Config.
func (e *InsideError) Is(target error) bool { return target == ErrNoDF11Config }

// ErrFirstFormat means that a model is of the first DF11 format.
// It is an ErrNoDF11Config, too.
var ErrFirstFormat error = firstFormatError{}

type firstFormatError struct{}

func (firstFormatError) Error() string {
	return "a DF11 model of format 0.1.0, whose weights are pickles that no current program loads"
}

func (firstFormatError) Is(target error) bool { return target == ErrNoDF11Config }

// A Config is what the dfloat11_config of a config.json says of a DF11 model.
type Config struct {
	// Version is that of the format; "" without a config.json.
	Version string
	// Dict is the pattern dict, in its order.
	Dict catalog.PatternDict
}

// knownVersion matches the versions of the official format that readers know (docs/format.md §12).
var knownVersion = regexp.MustCompile(`^0\.[2-5]\.[0-9]+$`)

// ParseConfig reads the dfloat11_config of a config.json. It refuses a version and an extension of
// the format that it doesn't know, and constants that aren't those of the version (docs/format.md
// §12, §17).
func ParseConfig(b []byte) (Config, error) {
	var c struct {
		DF11 *struct {
			Version json.RawMessage `json:"version"`
			Threads json.RawMessage `json:"threads_per_block"`
			Bytes   json.RawMessage `json:"bytes_per_thread"`
			Dict    json.RawMessage `json:"pattern_dict"`
		} `json:"dfloat11_config"`
	}
	if err := python.Unmarshal(b, &c); err != nil {
		return Config{}, err
	}
	members, _, _ := python.Members(b) // none if b isn't an object
	n, isFirst := 0, false
	for _, m := range members {
		if m.Key == "dfloat11_config" {
			n++
		}
		isFirst = isFirst || m.Key == "dfloat11_version"
	}
	if n > 1 { // readers take the last, and no tool writes two
		return Config{}, errors.New("dfloat11_config appears twice")
	}
	switch {
	case c.DF11 == nil && isFirst:
		return Config{}, ErrFirstFormat
	case c.DF11 == nil:
		return Config{}, ErrNoDF11Config
	}
	version := catalog.Decode[string](c.DF11.Version)
	switch official, extensions, _ := strings.Cut(version, "+"); {
	case !knownVersion.MatchString(official):
		return Config{}, fmt.Errorf("format version %.100q is unknown: this program knows 0.2 to 0.5",
			version)
	case version == plan.ParametersVersion:
		if c.DF11.Threads != nil || c.DF11.Bytes != nil {
			return Config{}, fmt.Errorf("version %s has threads_per_block and bytes_per_thread, which make "+
				"the official loader take it for its own", version)
		}
	case extensions != "":
		return Config{}, fmt.Errorf("version %.100q needs an extension of the format that this program "+
			"doesn't know: a newer df11-convert may", version)
	case !slices.Equal(catalog.Decode[[]int](c.DF11.Threads), []int{512}) ||
		catalog.Decode[int](c.DF11.Bytes) != 8:
		return Config{}, fmt.Errorf("threads_per_block %s and bytes_per_thread %s, want [512] and 8",
			stated(c.DF11.Threads), stated(c.DF11.Bytes))
	}
	dict, err := catalog.ParsePatternDict(c.DF11.Dict)
	return Config{version, dict}, err
}

// stated returns a member's value for an error, or "missing".
func stated(v json.RawMessage) string {
	if v == nil {
		return "missing"
	}
	return fmt.Sprintf("%.100s", v)
}
