package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// judge returns the verdict of a reader about the output, by what became of tiny models of its class
// there, and why. condition says what the reader needs. "Loads" takes more than the class: the
// config must build it with these layers, and every tensor must be one that the class loads.
func (c *choice) judge(tiny Verdict, condition string) (Verdict, string) {
	untested := func(why string) (Verdict, string) {
		return Untested, strings.TrimPrefix(why+"; "+condition, "; ")
	}
	t := c.tried()
	switch {
	case bytes.HasPrefix(c.reading.source.Config, []byte("\xef\xbb\xbf")):
		return Refuses, "config.json begins with a byte order mark, which its readers refuse"
	case c.extraLayer() != "":
		return Refuses, c.extraLayer()
	case t == nil:
		return untested("no model of class " + cmp.Or(c.cfg.Class(), "unknown") +
			" with these modules was tried there")
	case !c.isOwnDict():
		return untested("the pattern dict isn't the catalog's")
	case tiny == Refuses:
		return Refuses, "a tiny model of " + c.cfg.Class() +
			" didn't load there, or it loaded with other weights"
	case tiny == Untested:
		return untested("")
	}
	if why := c.doubt(t); why != "" {
		return untested(why)
	}
	return Loads, "a tiny model of this class loaded, every bit equal; " + condition
}

// redirects are members of a config.json that make a library read another file or build another
// class.
var redirects = []string{"auto_map", "configuration_files"}

// doubt says why a model may load otherwise than the tiny one that was tried, or returns "".
func (c *choice) doubt(t *catalog.Tried) string {
	for _, member := range redirects {
		if c.cfg.Holds(member) {
			return fmt.Sprintf("%s has %s, which sends readers elsewhere", c.survey.Config, member)
		}
	}
	if name, n, want := c.otherWidth(); name != "" {
		return fmt.Sprintf("%s is %d wide, but config.json has %d", name, n, want)
	}
	if why := c.unlikeConfig(t); why != "" {
		return why
	}
	for _, x := range c.plainTensors() {
		if !c.cfg.IsExtraLayer(catalog.Parent(x.Name)) && !t.Loads(x.Name, c.cfg) {
			return "the class loads no tensor of the name " + x.Name
		}
	}
	return ""
}

// extraLayer says which compressed module the class doesn't build, because the config counts fewer
// layers. It returns "" if there is none.
func (c *choice) extraLayer() string {
	for _, u := range c.Units {
		if c.cfg.IsExtraLayer(u.Path) {
			return fmt.Sprintf("config.json counts %d layers, so the class doesn't build %s",
				c.cfg.Number("num_hidden_layers"), u.Path)
		}
	}
	return ""
}

// otherWidth returns the token embedding and its width if the config has another hidden size, and no
// other size for embeddings. It returns "" if they agree.
func (c *choice) otherWidth() (name string, n, want int64) {
	want = int64(c.cfg.Number("word_embed_proj_dim", "embedding_size", "hidden_size", "d_model",
		"n_embd"))
	isOther := func(x Tensor) bool {
		isTable := slices.Contains(tableNames, catalog.Leaf(catalog.Parent(x.Name)))
		return want > 0 && isTable && len(x.Shape) == 2 && x.Shape[1] != want
	}
	all := c.plainTensors()
	for _, u := range c.Units {
		all = append(all, u.Attrs...)
	}
	if i := slices.IndexFunc(all, isOther); i >= 0 {
		return all[i].Name, all[i].Shape[1], want
	}
	return "", 0, 0
}
