package hub

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestRowsAreBoundedBeforeTheyAreHeld checks that rows beyond the most that a repo may have are
// refused while they're read, and that other answers than a list are refused as before.
func TestRowsAreBoundedBeforeTheyAreHeld(t *testing.T) {
	row := `{"rfilename":"x"},`
	for n, want := range map[int]error{0: nil, 3: nil, maxFiles: nil, maxFiles + 1: ErrTooLarge, 40 * maxFiles: ErrTooLarge} {
		text := []byte(`{"siblings":[` + strings.TrimSuffix(strings.Repeat(row, n), ",") + "]}")
		if n > 2*maxFiles {
			text = []byte(strings.ReplaceAll(string(text), row[:len(row)-1], "{}"))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var doc infoDocument
		err := json.Unmarshal(text, &doc)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, want) || want == nil && len(doc.Siblings) != n {
			t.Errorf("%d rows: %d, %v", n, len(doc.Siblings), err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; n > 2*maxFiles && made > 200<<20 {
			t.Errorf("%d rows: %d bytes were made", n, made)
		}
	}
	for text, good := range map[string]bool{`null`: true, `[]`: true, `{}`: false, `7`: false, `[7]`: false, `[{"size":"x"}]`: false} {
		var rows fileRows
		if err := json.Unmarshal([]byte(text), &rows); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
