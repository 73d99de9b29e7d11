//go:build linux

package rehearsal

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestKeptAgain: another process has the runs and every file of the target that were saved, and counts a run that was cut off
// as no kill.
func TestKeptAgain(t *testing.T) {
	home := t.TempDir()
	before := &program{home: home, hub: hubtest.Start(t), steps: []step{{Name: "one run", End: killed, Wall: time.Hour, Fetched: 7}}}
	before.hub.AddRepo(target, map[string][]byte{manifest: []byte("{}"), "README.md": []byte("card")})
	content := strings.Repeat("weights", 3)
	if _, err := before.hub.AddGenerated(target, "model.safetensors", int64(len(content)), "", strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := before.save(step{Name: "one run", RSS: 5}); err != nil {
		t.Fatal(err)
	}
	after := &program{home: home, hub: hubtest.Start(t)}
	if err := after.restore(); err != nil {
		t.Fatal(err)
	}
	if want := append(before.steps, step{Name: "one run", RSS: 5}); !reflect.DeepEqual(after.steps, want) || after.killed() != 1 {
		t.Errorf("steps %+v, want %+v", after.steps, want)
	}
	if got, want := after.hub.Files(target, "main"), before.hub.Files(target, "main"); !reflect.DeepEqual(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestSumsAreComputedOnce: a file whose sum is known is not read again, and one of the same name but another size is.
func TestSumsAreComputedOnce(t *testing.T) {
	p := &program{home: t.TempDir()}
	model := func(content string) *hubtest.Model {
		return &hubtest.Model{Weights: []hubtest.Generated{{Path: "a", Size: int64(len(content)), Body: strings.NewReader(content)}}}
	}
	first, err := p.sums(model("weights"))
	if err != nil {
		t.Fatal(err)
	}
	m := model("weights")
	m.Weights[0].Body = unreadable{}
	if again, err := p.sums(m); err != nil || !slices.Equal(again, first) {
		t.Error(again, first, err)
	}
	if other, err := p.sums(model("other weights")); err != nil || slices.Equal(other, first) {
		t.Error(other, err)
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errors.New("read") }
