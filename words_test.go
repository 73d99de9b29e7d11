package df11convert

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wordsOut are expressions that no text of ours uses, and what to write instead. Case doesn't matter,
// unless (?-i:) says so.
var wordsOut = []struct{ words, write string }{
	{`tells|is told|are told`, "says, reports, prints, publishes; people tell"},
	{`(?-i:beside|Beside (a|an|the|its|that))`, "next to, besides, also, and"},
	{`nobody|nobody's`, "no one"},
	{`whoever|whosoever`, "anyone who, you"},
	{`anew`, "again"},
	{`ones? that`, "the noun again"},
	{`of which|that which`, "whose, or a new sentence"},
	{`vouch\w*|the word of`, "guarantee, claim"},
	{`by hand|in its place`, "manually, instead"},
	{`mends?|mended|mending`, "fix"},
	{`does without|do without`, "needs no, doesn't use"},
	{`to be had`, "available"},
	{`an? \w+ a (line|page|row)`, "one X per line"},
	{`a tenth`, "10%"},
	{`(held|holds?|holding) (it |them )?against`, "compare"},
	{`(an?|the|short|long|with) (nap|pause)s?|pauses`, "wait"},
	{`(?-i:FP(16|32))`, "F16, F32, as headers spell them"},
	{`(the|its|their|published|same|every) sha256`, "SHA-256, unless it's a field"},
	{`(and|it) gives (the|an?|all|what|those|its?|no|how|whether|true)`, "returns, makes, prints"},
}

// wordsStart may not begin a comment or a sentence.
var wordsStart = []struct{ words, write string }{
	{`\w+ gives (the|an?|all|what|those|its?|no|how|whether|true)`, "returns, makes, prints"},
	{`(?-i:Of) (an?|the|all|any|what|several|these|those)`, "the subject first"},
}

// plainTexts are the ends of the names of files in which every line may hold text.
var plainTexts = regexp.MustCompile(`(\.(md|tmpl|ya?ml|sh|sbatch|py|html|m?js|css|toml|cu|c|h|txtar)|` +
	`\.schema\.json|/(Dockerfile|run))$`)

// notWords matches code in a line of text: what stands in backticks, tags of fields, paths, quoted
// names, and members of objects.
var notWords = regexp.MustCompile("`[^`]*`" + `|json:"[^"]*"|\S*/\S*|"[a-z_]+"|\.[A-Za-z_]\w*`)

// TestWordsThatAreOut reads the comments and strings of Go files, and all lines of other texts.
func TestWordsThatAreOut(t *testing.T) {
	write := map[*regexp.Regexp]string{regexp.MustCompile(`[0-9f] %($|[),:]|[ .]($|\D))`): "27%, without a space"}
	for _, w := range wordsOut {
		write[regexp.MustCompile(`(?i)\b(`+w.words+`)\b`)] = w.write
	}
	for _, w := range wordsStart {
		write[regexp.MustCompile(`(?i)(^|[.:] )(`+w.words+`)\b`)] = w.write
	}
	n := 0
	eachText(t, func(file string, line int, text string) {
		n++
		text = notWords.ReplaceAllString(text, "X")
		for re, instead := range write {
			if found := re.FindString(text); found != "" {
				t.Errorf("%s:%d: %q: write %s: %s", file, line, found, instead, text)
			}
		}
	})
	if n < 30000 {
		t.Errorf("only %d lines of text were found", n)
	}
}

// eachText visits every line of every text of the tree, without the signs that begin a comment.
func eachText(t *testing.T, visit func(file string, line int, text string)) {
	t.Helper()
	each := func(file string, first int, text string) {
		for line := range strings.Lines(text) {
			visit(file, first, strings.TrimSpace(strings.TrimLeft(line, "/*# \t")))
			first++
		}
	}
	for _, name := range tree(t, func(dir string) bool { return dir != "testdata" }) {
		switch {
		case name == "words_test.go":
		case strings.HasSuffix(name, ".go"):
			eachGoText(t, name, each)
		case plainTexts.MatchString("/" + name):
			each(name, 1, read(t, name))
		}
	}
}

// eachGoText visits the comments and strings of a Go file.
func eachGoText(t *testing.T, name string, visit func(file string, line int, text string)) {
	t.Helper()
	src := read(t, name)
	file := token.NewFileSet().AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), nil, scanner.ScanComments)
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		switch tok {
		case token.COMMENT:
			visit(name, file.Line(pos), text)
		case token.STRING:
			if plain, err := strconv.Unquote(text); err == nil {
				visit(name, file.Line(pos), plain)
			}
		}
	}
}
