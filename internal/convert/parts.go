package convert

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// checkParts returns a PartsError if any of n parts has left an output to make.
func (j *job) checkParts(n int, done *ledger.Ledger) error {
	missing, makers := map[int][]string{}, spans.Assign(j.outputs, n)
	for _, o := range j.outputs {
		if part := makers[o]; !done.Done(o.Path) {
			missing[part] = append(missing[part], o.Path)
		}
	}
	var parts PartsError
	for i := 1; i <= n; i++ { // the outputs of no part are for this run
		if names := missing[i]; names != nil {
			parts = append(parts, fmt.Sprintf("part %d of %d lacks %s", i, n, human.List(names)))
		}
	}
	if parts != nil {
		return parts
	}
	return nil
}

// A PartsError says what parts lack, one text per part.
type PartsError []string

func (e PartsError) Error() string { return "some parts are incomplete: " + human.List(e) }
