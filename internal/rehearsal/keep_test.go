//go:build linux

package rehearsal

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// kept is what outlives a rehearsal that is cut off: what the Hub has of the target, and the runs so far.
type kept struct {
	Target map[string]keptFile
	Steps  []step
}

// keptFile is a file of the target: the content of a small one, the size and hash of a large one.
type keptFile struct {
	Content, SHA256 string
	Size            int64
}

func (p *program) state() string { return filepath.Join(p.home, "state.json") }

// save writes the state, with the step that is running, if there is one.
func (p *program) save(running ...step) error {
	k := kept{Target: map[string]keptFile{}, Steps: append(p.steps[:len(p.steps):len(p.steps)], running...)}
	for name, f := range p.hub.Files(target, "main") {
		if f.SHA256 != "" {
			k.Target[name] = keptFile{SHA256: f.SHA256, Size: f.Size}
			continue
		}
		content, err := p.hub.ReadFile(target, "main", name)
		if err != nil {
			return err
		}
		k.Target[name] = keptFile{Content: string(content)}
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(p.state()+".new", b, 0o644), os.Rename(p.state()+".new", p.state()))
}

// restore takes up the state that a rehearsal has left that was cut off, if there is one.
func (p *program) restore() error {
	b, err := os.ReadFile(p.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var k kept
	if err := errors.Join(err, json.Unmarshal(b, &k)); err != nil {
		return err
	}
	p.steps = k.Steps
	if len(k.Target) == 0 {
		return nil
	}
	small := map[string][]byte{}
	for name, f := range k.Target {
		if f.SHA256 == "" {
			small[name] = []byte(f.Content)
		}
	}
	p.hub.AddRepo(target, small)
	for name, f := range k.Target {
		if f.SHA256 == "" {
			continue
		}
		if _, err := p.hub.AddGenerated(target, name, f.Size, f.SHA256, nil); err != nil {
			return err
		}
	}
	return nil
}

// sums gives the sha256 of every weight file. They are computed once for a folder of -keep.
func (p *program) sums(m *hubtest.Model) ([]string, error) {
	f, err := os.OpenFile(filepath.Join(p.home, "sums"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		sum, file, _ := strings.Cut(lines.Text(), " ")
		known[file] = sum
	}
	sums := make([]string, len(m.Weights))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, w := range m.Weights {
		file := fmt.Sprintf("%d %s", w.Size, w.Path)
		if sums[i] = known[file]; sums[i] != "" {
			continue
		}
		workers.Go(func() error {
			h := sha256.New()
			if _, err := io.CopyBuffer(h, io.NewSectionReader(w.Body, 0, w.Size), make([]byte, 256<<10)); err != nil {
				return err
			}
			sums[i] = fmt.Sprintf("%x", h.Sum(nil))
			_, err := fmt.Fprintf(f, "%s %s\n", sums[i], file)
			return err
		})
	}
	return sums, workers.Wait()
}
