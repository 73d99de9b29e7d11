package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/df11-convert/df11-convert/internal/human"
)

// results is stdout. It makes text printable and keeps the first error, so callers can ignore write
// errors, and a run that loses its result still fails. A closed stdout gives none: Go opens
// /dev/null for it, as other programs do that want no output.
type results struct {
	to  *os.File
	err error
}

func (r *results) Write(b []byte) (int, error) {
	n := len(b)
	_, err := io.WriteString(r.to, human.Printable(string(b)))
	if err != nil {
		err = fmt.Errorf("%w: %s", errOutput, err.Error())
		r.err, n = cmp.Or(r.err, err), 0
	}
	return n, err
}

// width returns the width of the terminal that shows the results; 0 if none does.
func (r *results) width() int {
	if !term.IsTerminal(int(r.to.Fd())) {
		return 0
	}
	width, _ := size(r.to)
	return width
}

// errOutput says that a result couldn't be printed. It comes with the text of its cause, and
// doesn't wrap that, because hints about full disks don't fit it.
var errOutput = errors.New("write to standard output")
