package ledger

import (
	"os"
	"testing"
)

// If the journal can't record a change, the run ends. Otherwise the next run wouldn't know about
// the change, and files that it names might be gone.
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
	if err := l.file.Close(); err != nil { // like a full disk
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"output":   l.Add(Output{Path: "a"}),
		"uploaded": l.Uploaded("a"),
		"tensor":   l.AddTensors([]Tensor{{Output: "b"}}),
	} {
		if err == nil {
			t.Errorf("a line is lost without an error: %s", name)
		}
	}
}
