package ledger_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// FuzzJournal reads arbitrary journals. Memory stays in proportion.
func FuzzJournal(f *testing.F) {
	f.Add(of(f, "aaa", "bbb").ForRepo([]names.File{{Path: "a.safetensors", SHA256: "aa"}}, nil))
	f.Add([]byte(`{"version":1,"plan":"digest"}` + "\n" + `{"output":{"path":"a","units":[{}]}}` + "\n" + `{"uploaded":"a"}` + "\n" + `{"tensor":{"output":"a"}}{"file":{"offset":1}}{"fi`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, journal []byte) {
		alloc.PerByte(t, 1000, len(journal), func() {
			l := ledger.New("digest", false)
			l.Read(ledger.ReadJournal(journal))
			l.ForRepo(nil, nil)
		})
	})
}

// A journal larger than a conversion can make it claims nothing and costs little.
func TestJournalBombIsEmpty(t *testing.T) {
	bomb := []byte(`{"version":1,"plan":"digest","claims":["a"]}`)
	for range 3 << 20 {
		bomb = append(bomb, "{}"...)
	}
	alloc.Within(t, 1<<20, func() {
		if c := ledger.ReadJournal(bomb); c.Plan != "" || len(c.Outputs) != 0 {
			t.Errorf("claims %v", c)
		}
	})
}
