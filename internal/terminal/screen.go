package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/df11-convert/df11-convert/internal/human"
)

// Screen is a terminal with a block of lines at its end that is drawn in place again and again.
// Everything else written to it appears above the block, so a message never lands inside a progress
// line. (The library that renders the bars can redraw only a single line.)
type Screen struct {
	mu    sync.Mutex
	W     io.Writer
	Width func() int // of a line; 0: any
	block []string   // as drawn; the cursor is at the start of the line below
}

// Write puts whole lines above the block and escapes what isn't printable.
func (s *Screen) Write(b []byte) (int, error) {
	if err := s.above(human.Printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Line puts one line above the block: a painted word and a text from any source.
func (s *Screen) Line(painted, text string) {
	text = human.Printable(human.OneLine(text))
	_ = s.above(painted + " " + text + "\n") // no other place to report it
}

func (s *Screen) above(text string) error {
	text = Fold(text, s.Width())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.block) > 0 {
		text = s.toTop() + eraseBelow + text + s.draw(s.block)
	}
	_, err := io.WriteString(s.W, text)
	return err
}

// Show draws the block again. No line may be wider than the terminal. It ignores errors, because a
// run shouldn't stop when its progress can't be drawn.
func (s *Screen) Show(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.block)+len(lines) == 0 {
		return
	}
	_, _ = io.WriteString(s.W, s.toTop()+s.draw(lines))
	s.block = lines
}

// Release leaves the block as it is; whatever follows appears below it.
func (s *Screen) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.block = nil
}

// Control sequences of ECMA-48: erase to the end of the line, and of the screen.
const (
	eraseRight = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// toTop moves the cursor to the first line of the block.
func (s *Screen) toTop() string {
	if len(s.block) == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF", len(s.block))
}

func (s *Screen) draw(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + eraseRight + "\n")
	}
	return b.String() + eraseBelow
}
