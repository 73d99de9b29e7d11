package ledger

import (
	"os"
	"testing"
)

// TestLostLineIsAnError: a change that the journal does not take ends the run, whatever the change
// is. The next run would know nothing of it, while files that it tells of may be gone.
func TestLostLineIsAnError(t *testing.T) {
	l := New("digest", false)
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := l.Save(dir, "journal.json"); err != nil {
		t.Fatal(err)
	}
	if err := l.file.Close(); err != nil { // as a disk that takes nothing more
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"output":   l.Add(Output{Path: "a"}),
		"uploaded": l.Uploaded("a"),
		"tensor":   l.AddTensors([]Tensor{{Output: "b"}}),
	} {
		if err == nil {
			t.Errorf("nobody learns that a line is lost: %s", name)
		}
	}
}
