package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// renamePaths turns the source's names into the module paths of the class that loads the output, where the catalogue
// says that they differ. All tensors are renamed, not only those of units.
func (p *planner) renamePaths() error {
	if p.entry == nil || len(p.entry.PathRename) == 0 {
		return nil
	}
	rules, err := compileRules(p.entry.PathRename)
	if err != nil {
		return err
	}
	renamed := 0
	for i := range p.inv.tensors {
		t := &p.inv.tensors[i]
		if name := rename(rules, t.Name); name != t.Name {
			t.Name = name
			renamed++
		}
	}
	if renamed == 0 {
		return nil
	}
	p.plan.Renamed = true
	p.differ("%s stored under the module paths of current transformers instead of the source's names", count(renamed, "tensor"))
	return p.inv.rebuild()
}

// renameRule rewrites names that a regex matches at their start.
type renameRule struct {
	re *regexp.Regexp
	to string
}

// compileRules compiles the rules of an entry.
func compileRules(pairs [][2]string) ([]renameRule, error) {
	rules := make([]renameRule, len(pairs))
	for i, pair := range pairs {
		re, err := regexp.Compile(pair[0])
		if err != nil {
			return nil, fmt.Errorf("catalogue: path_rename: %w", err)
		}
		rules[i] = renameRule{re, pair[1]}
	}
	return rules, nil
}

// rename applies the first rule that matches. Names that have the target form of any rule already stay.
func rename(rules []renameRule, name string) string {
	for _, r := range rules {
		m := r.re.FindString(name)
		if strings.HasPrefix(name, r.to) && len(r.to) > len(m) {
			return name
		}
	}
	for _, r := range rules {
		if m := r.re.FindStringIndex(name); m != nil && m[0] == 0 {
			return r.to + name[m[1]:]
		}
	}
	return name
}
