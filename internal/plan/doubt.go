package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// judge returns a reader's verdict on the output, and the reason. It goes by what became of tiny
// models of the class in that reader. condition says what the reader needs. "Loads" takes more than
// the class: the config must build it with these layers, and every tensor must be one that the
// class loads.
func judge(o *output, t precedent, tiny Verdict, condition string) (Verdict, string) {
	untested := func(why string) (Verdict, string) {
		return Untested, strings.TrimPrefix(why+"; "+condition, "; ")
	}
	switch {
	case bytes.HasPrefix(o.from.source.Config, []byte("\xef\xbb\xbf")):
		return Refuses, "config.json begins with a byte order mark, which its readers refuse"
	case extraLayer(o) != "":
		return Refuses, extraLayer(o)
	case t.Tried == nil:
		if o.from.cfg.Class() == "" {
			return untested("nothing says which class the model is")
		}
		return untested("no model of class " + o.from.cfg.Class() + " with these modules was tried there")
	case !o.isOwnDict():
		return untested("the pattern dict isn't the catalog's")
	case tiny == Refuses:
		return Refuses, "a tiny model of " + o.from.cfg.Class() +
			" didn't load there, or it loaded with other weights"
	case tiny == Untested:
		return untested("")
	}
	if why := doubt(o, t.Tried); why != "" {
		return untested(why)
	}
	return Loads, "a tiny model of this class loaded, every bit equal; " + condition
}

// redirects are members of a config.json that make a library read another file or build another
// class.
var redirects = []string{"auto_map", "configuration_files"}

// doubt says why a model may load otherwise than the tiny one that was tried, or returns "".
func doubt(o *output, t *catalog.Tried) string {
	cfg, tensors := o.from.cfg, o.tensors()
	for _, member := range redirects {
		if cfg.Holds(member) {
			return fmt.Sprintf("%s has %s, which sends readers elsewhere", o.from.survey.Config, member)
		}
	}
	for _, why := range []string{otherWidth(cfg, tensors), uncountedLayer(cfg, o.units),
		otherRows(cfg, tensors), lackedName(cfg, t, tensors)} {
		if why != "" {
			return why
		}
	}
	for _, x := range o.plain() {
		if !cfg.IsExtraLayer(catalog.Parent(x.Name)) && !t.Loads(x.Name, cfg) {
			return "the tiny models that we tried with such a config have no tensor of the name " + x.Name
		}
	}
	return ""
}

// extraLayer says which compressed module the class doesn't build, because the config counts fewer
// layers. It returns "" if there is none.
func extraLayer(o *output) string {
	for _, u := range o.units {
		if o.from.cfg.IsExtraLayer(u.Path) {
			return fmt.Sprintf("config.json counts %d layers, so the class doesn't build %s",
				o.from.cfg.Number("num_hidden_layers"), u.Path)
		}
	}
	return ""
}
