package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// screen is a terminal with a block of lines at its end that is drawn again and again in place. Everything else that is
// written to it appears above the block, so that a message never lands in the middle of a progress line.
//
// The library that renders the bars redraws a single line in place, so the block is ours.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int // of a line; nil or 0 for any
	block []string   // as drawn; the cursor is at the start of the line below
}

// Write puts whole lines above the block, as far as they are printable.
func (s *screen) Write(b []byte) (int, error) {
	if err := s.above(s.fold(printable(string(b)))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// line puts one line above the block: a painted word and a text of whatever origin.
func (s *screen) line(painted, text string) {
	_ = s.above(s.fold(painted + " " + printable(lineAndColumn.Replace(text)) + "\n")) // nobody else can be told
}

func (s *screen) fold(text string) string {
	if s.width == nil {
		return text
	}
	return fold(text, s.width(), 2)
}

func (s *screen) above(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.block) > 0 {
		text = s.toTop() + eraseBelow + text + s.draw(s.block)
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// show draws the block anew. No line may be wider than the terminal. Without an error to be seen there is nothing to do
// about one: progress that cannot be drawn is no reason to stop.
func (s *screen) show(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.block)+len(lines) == 0 {
		return
	}
	_, _ = io.WriteString(s.w, s.toTop()+s.draw(lines))
	s.block = lines
}

// release leaves the block as it is and lets what follows appear below.
func (s *screen) release() {
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
func (s *screen) toTop() string {
	if len(s.block) == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF", len(s.block))
}

func (s *screen) draw(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + eraseRight + "\n")
	}
	return b.String() + eraseBelow
}
