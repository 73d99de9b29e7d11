package plan

import (
	"errors"
	"slices"
	"strings"
)

// tie is a pair of names that the model may share: drop is not stored when it is shared, keep is.
type tie struct{ drop, keep string }

// Last path components of output heads and of token embeddings, for models that the catalogue does not know.
var (
	headNames  = []string{"lm_head", "embed_out", "output", "proj_out"}
	tableNames = []string{"embed_tokens", "tok_embeddings", "word_embeddings", "wte", "embed_in", "embeddings"}
)

// maxTieDepth is the number of dots in the longest usual name: model.decoder.embed_tokens.weight.
const maxTieDepth = 3

// decideTies finds out whether head and embedding are one matrix, and takes the copy that is not stored out of the
// inventory (docs/format.md §15).
func (p *planner) decideTies() error {
	always, whenTied := p.tiePairs()
	if p.isTied(whenTied) {
		p.plan.TiedEmbeddings = len(whenTied) > 0
		always = append(always, whenTied...)
	}
	drop := map[string]bool{}
	for _, t := range always {
		if err := p.applyTie(t, drop); err != nil {
			return err
		}
	}
	p.ties = always
	return p.inv.remove(drop)
}

// tiePairs returns the pairs that are always shared and those that are shared when the embeddings are tied.
func (p *planner) tiePairs() (always, whenTied []tie) {
	if p.entry == nil || p.entry.Tied == nil {
		if t, ok := p.guessTie(); ok {
			whenTied = []tie{t}
		}
		return nil, whenTied
	}
	for _, pair := range p.entry.Tied.Always {
		always = append(always, tie{pair[0], pair[1]})
	}
	if t := p.entry.Tied; t.Head != "" {
		whenTied = []tie{{t.Head + ".weight", t.Embedding + ".weight"}}
	}
	return always, whenTied
}

// guessTie looks for a head and a token embedding by their usual names; the shortest path of each wins.
func (p *planner) guessTie() (tie, bool) {
	table := p.shortest(tableNames)
	if table == "" {
		return tie{}, false
	}
	head := p.shortest(headNames)
	if head == "" {
		head = "lm_head.weight"
	}
	return tie{drop: head, keep: table}, true
}

// shortest returns the 2-D weight with the shortest path whose module has one of the names; "" if
// there is none.
func (p *planner) shortest(names []string) string {
	best := ""
	for _, t := range p.inv.tensors {
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || len(t.Shape) != 2 || !slices.Contains(names, module[strings.LastIndexByte(module, '.')+1:]) {
			continue
		}
		if n := strings.Count(t.Name, "."); n <= maxTieDepth && (best == "" || n < strings.Count(best, ".")) {
			best = t.Name
		}
	}
	return best
}

// isTied answers from the config, else from the catalogue, else from what is stored: a model that stores its head is
// taken for untied, which is lossless either way.
func (p *planner) isTied(pairs []tie) bool {
	if len(pairs) == 0 {
		return false
	}
	if t := p.cfg.tied(); t != nil {
		return *t
	}
	if p.entry != nil && p.entry.Tied != nil && p.entry.Tied.Default != nil {
		return *p.entry.Tied.Default
	}
	return !p.inv.holds(pairs[0].drop) && p.inv.holds(pairs[0].keep) && p.cfg.hasHead()
}

// applyTie marks the copy for removal and asks for its comparison; a copy without its original takes its name.
func (p *planner) applyTie(t tie, drop map[string]bool) error {
	copied, okCopy := p.inv.get(t.drop)
	original, okOriginal := p.inv.get(t.keep)
	switch {
	case !okCopy:
		return nil
	case p.opt.PatternDict != nil && p.dictMatches(t.drop):
		return p.keepBoth(t)
	case !okOriginal:
		p.inv.tensors[p.inv.byName[t.drop]].Name = t.keep
		p.differ("%s is stored as %s, the name that a model with tied embeddings loads", t.drop, t.keep)
		return p.inv.rebuild()
	case copied.DType != original.DType || !slices.Equal(copied.Shape, original.Shape):
		return refuse(ReasonTied, "set tie_word_embeddings to false in a copy of the source if the two are really different",
			"the config ties %s to %s, but the source stores them with different types or shapes", t.drop, t.keep)
	}
	drop[t.drop] = true
	p.plan.Aliases = append(p.plan.Aliases, Alias{Tensor: copied, Of: original})
	p.differ("%s is not stored: the source's copy must equal %s, which the loader takes for it", t.drop, t.keep)
	return nil
}

// keepBoth allows a given dict that compresses the head of a tied model, as long as the embedding is a unit as well or
// stays plain (docs/format.md §15: both ways load).
func (p *planner) keepBoth(t tie) error {
	p.warn(WarnTied, []string{t.drop, t.keep}, "the pattern dict compresses %s although it is tied to %s: the matrix is stored twice",
		t.drop, t.keep)
	return nil
}

// dictMatches says whether a pattern of the dict in use matches the module of a weight.
func (p *planner) dictMatches(weight string) bool {
	for _, pat := range p.plan.PatternDict {
		if re, err := compilePython(pat.Regex); err == nil && re.MatchString(parent(weight)) {
			return true
		}
	}
	return false
}

// explainUnmatched replaces the advice about a pattern that matches nothing where the caller did not write it, and says
// that a tied model stores no head, if that is the likely cause.
func (p *planner) explainUnmatched(err error) error {
	var r *RefusedError
	if !errors.As(err, &r) || !strings.Contains(r.Detail, "matches no module") {
		return err
	}
	switch {
	case p.plan.TiedEmbeddings:
		r.Hint = "the embeddings are tied, so the head is not stored; remove head and embedding from the pattern dict"
	case p.entry != nil && p.lacksHead():
		r.Detail = "the source has no " + p.entry.Tied.Head + ".weight, although its embeddings are not tied"
		r.Hint = "if they are, set tie_word_embeddings to true in a copy of the source; else its weights are incomplete"
	case p.entry != nil:
		r.Hint = incompleteHint
	}
	return err
}

// lacksHead says whether the source stores the embedding but not the head that the catalogue's entry expects.
func (p *planner) lacksHead() bool {
	t := p.entry.Tied
	return t != nil && t.Head != "" && p.inv.holds(t.Embedding+".weight") && !p.inv.holds(t.Head+".weight")
}

// refuseHalfTied refuses a dict that compresses the embedding of a tied model but not its head: whether that loads
// depends on the order of a directory listing (docs/format.md §15).
func (p *planner) refuseHalfTied() error {
	if !p.plan.TiedEmbeddings {
		return nil
	}
	for _, t := range p.ties {
		if p.dictMatches(t.keep) && !(p.dictMatches(t.drop) && p.inv.holds(t.drop)) {
			return refuse(ReasonTied, "remove the embedding from the pattern dict",
				"the pattern dict compresses %s but not %s, which is tied to it", t.keep, t.drop)
		}
	}
	return nil
}
