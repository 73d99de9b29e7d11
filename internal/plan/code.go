package plan

import (
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// Code is the Python code that a library runs to build a model, if it's trusted.
type Code struct {
	// Repos are the repos of the Hub whose code the config names. A library runs what their main holds
	// at the time, whatever the commit of the model is.
	Repos []string
	// Missing are the modules of the model's own code that the output lacks.
	Missing []string
}

// findCode finds the code that the config names, and warns of what isn't in the output.
func findCode(r *reading, f *placement, loader catalog.Loader, notes *Notes) (c Code) {
	repos, modules := r.cfg.Code()
	c.Repos = repos
	if loader.RemoteCode {
		c.Missing = slices.DeleteFunc(modules, func(module string) bool {
			return slices.ContainsFunc(f.carried.Copied, func(f File) bool {
				return f.Path == module || f.Path == path.Join(path.Dir(r.survey.Config), module)
			})
		})
	}
	if len(c.Repos) > 0 {
		notes.warn("%s names code of %s: with trust_remote_code, transformers runs what main there holds "+
			"at the time, because no commit pins it", r.survey.Config, human.List(c.Repos))
	}
	if len(c.Missing) > 0 {
		notes.lack("%s names code that the source lacks, so no library can build the model: %s",
			r.survey.Config, human.List(c.Missing))
	}
	return c
}
