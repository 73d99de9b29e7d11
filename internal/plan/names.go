package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// rebase adds the prefix of the base model to all names, if the stated class has a prefix and no
// name does. It removes the prefix if the class is itself the base model. Transformers does the
// same (base_model_prefix). Names of heads stay, and so do names that fit an entry or a given dict
// better.
func rebase(ctx context.Context, r *reading, inv *inventory) *inventory {
	under, bare, dict := r.facts.Under, r.facts.Bare, r.opt.PatternDict
	if slices.ContainsFunc(inv.tensors,
		func(t Tensor) bool { return strings.HasPrefix(t.Name, under) }) {
		under = ""
	}
	best := bestEntry(r, inv)
	// transformers has rules of its own for these names, which a prefix would hide from it
	if r.facts.IsNew && inv.changes(&r.facts) || inv.isRenamed(r.facts.Renames, under) {
		return inv
	}
	if under+bare == "" || best != nil && inv.hasBlocks(ctx, best) {
		return inv
	}
	tensors := slices.Clone(inv.tensors)
	for i, t := range tensors {
		if isHead := slices.Contains(headNames, catalog.Parent(t.Name)); !isHead {
			tensors[i].Name = under + strings.TrimPrefix(t.Name, bare)
		}
	}
	based, err := inv.with(tensors)
	switch {
	case err != nil, best != nil && !based.hasBlocks(ctx, best),
		len(dict) > 0 && dict.CountMatching(ctx, based.modules) <=
			dict.CountMatching(ctx, inv.modules):
		return inv
	}
	return based
}

// isRenamed reports whether a rule gives a tensor's name a prefix.
func (inv *inventory) isRenamed(rules [][2]string, prefix string) bool {
	return prefix != "" && slices.ContainsFunc(rules, func(rule [2]string) bool {
		return strings.HasPrefix(rule[1], prefix) && slices.ContainsFunc(inv.tensors,
			func(t Tensor) bool { return strings.HasPrefix(t.Name, rule[0]) })
	})
}

// changes reports whether transformers 5 makes other weights of any tensor.
func (inv *inventory) changes(class *catalog.Facts) bool {
	return slices.ContainsFunc(inv.tensors, func(t Tensor) bool { return class.Changes(t.Name) })
}

// nameTensors renames all tensors to the module paths of the class that loads the output: the
// entry's class, or else the stated one. If that class has other modules, it notes that.
func nameTensors(ctx context.Context, r *reading, m *recognition, inv *inventory,
	notes *Notes) (*inventory, error) {
	rules := r.facts.Renames
	switch {
	case m.entry != nil:
		rules = m.entry.Renames()
	case m.names.mapped: // transformers renames more than these rules say, and wants the source's names
		rules = nil
	}
	named, err := inv.named(ctx, rules, m.dict)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, t := range named.tensors {
		if t.Name != t.Source {
			n++
		}
	}
	if n > 0 && r.survey.Layout != catalog.ComfyUI {
		notes.differ("%s stored under the module paths of current transformers instead of the "+
			"source's names", human.Count(n, "tensor"))
	}
	return named, nil
}

// named renames the tensors by rules, unless their own names fit a dict better.
func (inv *inventory) named(ctx context.Context, rules [][2]string,
	dict catalog.PatternDict) (*inventory, error) {
	if len(rules) == 0 {
		return inv, nil
	}
	tensors := slices.Clone(inv.tensors)
	for i := range tensors {
		tensors[i].Name = catalog.Rename(rules, tensors[i].Name)
	}
	modules, err := catalog.Modules(namesOf(tensors))
	if err != nil {
		return nil, err
	}
	if len(dict) > 0 &&
		dict.CountMatching(ctx, modules) <= dict.CountMatching(ctx, inv.modules) {
		return inv, nil
	}
	return inv.with(tensors)
}
