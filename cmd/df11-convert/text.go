package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// table aligns columns when it is flushed. Its cells are printable before that, because a tabwriter
// takes \v, \f, and the byte \xff, which no UTF-8 has, as commands of its own.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) *table { return &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row adds a line with a name and a text. It adds nothing if the text is empty.
func (t *table) row(name, format string, args ...any) {
	if text := human.Printable(sprintf(format, args...)); text != "" {
		printf(t, "%s\t%s\n", name, text)
	}
}

// line adds a line of cells.
func (t *table) line(cells []string) {
	cell := func(text string) string { return human.Message("%s", text) }
	fmt.Fprintln(t, strings.Join(transform(cells, cell), "\t"))
}

// rows are those of a table with more than two columns.
type rows struct {
	names []string // of the columns
	cells [][]string
	// numbers aligns all columns but the last to the right, which then needs no name
	numbers bool
	// indented leaves out the names
	indented bool
}

func (r *rows) add(cells ...string) { r.cells = append(r.cells, cells) }

// table returns the rows as a table.
func (r *rows) table() string {
	var b strings.Builder
	t, last, lines := newTable(&b), len(r.names)-1, r.cells
	if r.numbers {
		t.Init(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	}
	if !r.indented {
		lines = append([][]string{r.names}, lines...)
	}
	for i, cells := range lines {
		cells = slices.Clone(cells)
		switch {
		case r.indented:
			cells[0] = "  " + cells[0]
		case r.numbers && i == 0:
			cells[last] = ""
		case r.numbers:
			cells[last] = "  " + cells[last]
		}
		t.line(cells)
	}
	t.Flush()
	return b.String()
}

// print writes the rows as a table. On a terminal that is too narrow for it, each row becomes a
// table of two columns, without the empty cells.
func (r *rows) print(w io.Writer, width int) {
	if table := r.table(); terminal.Fits(table, width) {
		fmt.Fprint(w, table)
		return
	}
	for i, cells := range r.cells {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t := newTable(w)
		for k, cell := range cells {
			if cell != none {
				t.row(r.names[k], "%s", cell)
			}
		}
		t.Flush()
	}
}

// printf is fmt.Fprintf for our formats with anyone's arguments: it escapes line ends and tabs in
// them.
func printf(w io.Writer, format string, args ...any) {
	fmt.Fprint(w, sprintf(format, args...))
}

func sprintf(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = human.OneLine(a)
		case error:
			args[i] = human.OneLine(a.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}

func atCommit(commit string) string {
	if commit == "" {
		return ""
	}
	return " at " + commit[:min(12, len(commit))]
}

// choose returns one of two values.
func choose[T any](yes bool, ifYes, ifNo T) T {
	if yes {
		return ifYes
	}
	return ifNo
}

// transform applies of to every element. It never returns nil, so JSON shows [].
func transform[T, U any](list []T, of func(T) U) []U {
	made := make([]U, 0, len(list))
	for _, x := range list {
		made = append(made, of(x))
	}
	return made
}

// dictOrigin says where a plan's pattern dict comes from: which entry of the catalog it is, if any,
// and what that entry was taken from.
func dictOrigin(entry, provenance string) string {
	kind, detail, _ := strings.Cut(provenance, ":")
	switch {
	case kind == "given":
		return "from --pattern-dict"
	case detail == "":
		return "derived from the names and shapes of the model's tensors"
	case kind == "extended":
		return entry + ", from ComfyUI-DFloat11-Extended"
	case kind == "derived":
		return entry + ", from the source code of the class"
	}
	return entry + ", from " + detail
}
