package ledger

import (
	"bytes"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// The journals of versions 2 and 3 are older than those of version 1: the numbers started again
// before the first release. They name no result, no commit, and no digest of an output, and count a
// unit's weights under other names. Kept spools and hashes begun by these programs aren't used.

// prereleaseHead is the first line of a journal of version 2 or 3.
type prereleaseHead struct {
	Plan   string            `json:"plan"`
	Source string            `json:"source"`
	Keeps  bool              `json:"keeps"`
	Former map[string]string `json:"former"` // SHA-256 by path
}

// prereleaseRecord is any other line.
type prereleaseRecord struct {
	Output *struct {
		Path   string           `json:"path"`
		Size   int64            `json:"size"`
		SHA256 string           `json:"sha256"`
		Units  []prereleaseUnit `json:"units"`
	} `json:"output"`
	Uploaded string `json:"uploaded"`
	Named    *struct {
		Path   string `json:"path"`
		SHA256 string `json:"sha256"`
	} `json:"named"`
}

type prereleaseUnit struct {
	Path      string              `json:"path"`
	Status    metadata.Status     `json:"status"`
	Reason    string              `json:"reason"`
	Bits      int64               `json:"bits"`
	Weights   int64               `json:"weights"`
	Exponents *metadata.Exponents `json:"exponents"`
	TieBroken bool                `json:"tie_broken"`
}

// readPrerelease returns what a journal of version 2 or 3 claims. first is its first line.
func readPrerelease(first, lines []byte) Claim {
	var h prereleaseHead
	if python.Unmarshal(first, &h) != nil {
		return Claim{}
	}
	c := newClaim(head{Plan: h.Plan, Result: plan.Identity{Source: h.Source}, Keeps: h.Keeps})
	c.Prerelease = true
	for path, sum := range h.Former {
		c.Others = append(c.Others, names.File{Path: path, Size: UnknownSize, SHA256: sum})
	}
	for line := range bytes.Lines(lines) {
		var r prereleaseRecord
		if python.Unmarshal(line, &r) != nil {
			break
		}
		now := record{Uploaded: r.Uploaded}
		if o := r.Output; o != nil {
			now.Output = &Output{Path: o.Path, Size: o.Size, SHA256: o.SHA256}
			for _, u := range o.Units {
				now.Output.Units = append(now.Output.Units, metadata.Unit{Path: u.Path,
					Status: u.Status, Reason: u.Reason, NWeights: u.Weights, CodedBits: u.Bits,
					Exponents: u.Exponents, TieBroken: u.TieBroken})
			}
		}
		if n := r.Named; n != nil {
			now.Named = &names.File{Path: n.Path, Size: UnknownSize, SHA256: n.SHA256}
		}
		c.add(now)
	}
	return c.checked()
}

// UnknownSize is the size of a file of which a journal says only the SHA-256.
const UnknownSize = -1

// Renamed records that an output in the folder has its name.
func (l *Ledger) Renamed(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outputs[path]
	o.From = ""
	l.outputs[path] = o
	return l.append(record{Output: &o}.line(), true)
}
