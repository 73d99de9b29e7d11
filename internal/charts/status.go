package charts

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
)

var (
	//go:embed status.html.tmpl
	statusPage string
	//go:embed status.css
	statusStyle template.CSS
)

// A Published is one model of a list, and what its target holds.
type Published struct {
	Source, Target Link
	State          string
	Mood           Mood
	BF16, DF11     int64  // sizes of the weight files, in bytes, by the manifest; 0 if unknown
	Made           string // the source's commit that the target was made from
	Weights        int64  // compared when the target was made, by its manifest
	Updated        string // date of the target's newest commit
	Days           int    // since then
	Needs          string // what a run or a person has to do, or why nothing is possible
}

// A Link is a name, and where a person finds it; the address may be "".
type Link struct{ Name, URL string }

// Mood says whether a model needs somebody.
type Mood string

// Moods, as the page and the badges color them.
const (
	Good    Mood = "good"    // nothing to do
	Pending Mood = "pending" // the next run does it
	Bad     Mood = "bad"     // a person has to look at it
	Out     Mood = "out"     // it can't be converted, as expected
)

// A group is the models of one mood, under what they have in common.
type group struct {
	Mood   Mood
	Label  string
	Models []Published
}

// groups returns the models by mood, without empty groups. Models that need somebody come first,
// each group in the order of the list.
func groups(models []Published) []group {
	all := []group{{Mood: Bad, Label: "for you to look at"}, {Mood: Pending, Label: "for the next run"},
		{Mood: Good, Label: "current"}, {Mood: Out, Label: "not convertible, as expected"}}
	for _, m := range models {
		i := slices.IndexFunc(all, func(g group) bool { return g.Mood == m.Mood })
		all[i].Models = append(all[i].Models, m)
	}
	return slices.DeleteFunc(all, func(g group) bool { return len(g.Models) == 0 })
}

// StatusHTML returns a page about a list of models that refers to nothing but their addresses,
// grouped by what needs somebody.
func StatusHTML(name string, models []Published, now, version string) ([]byte, error) {
	t := template.Must(template.New("status").Funcs(pageFuncs).Parse(statusPage))
	var b bytes.Buffer
	err := t.Execute(&b, map[string]any{
		"Name": name, "N": len(models), "Groups": groups(models), "Version": version,
		"Now": now, "Style": barsStyle + style + statusStyle,
	})
	return b.Bytes(), err
}

// Badge returns an SVG picture of one line: "DF11", then the model's state, or its size if it's
// current, and the day on which that was so, because a badge outlives it.
func (p Published) Badge(day string) []byte {
	words := text(p.State)
	if p.Mood == Good && p.BF16 > 0 {
		words = share(p.DF11, p.BF16) + " of BF16"
	}
	words += " on " + day
	// textLength makes every font as wide as the boxes are
	const label, letter, margin = 34, 6.2, 10
	width := letter*float64(len(words)) + 2*margin
	color := map[Mood]string{Good: "#0b6d77", Pending: "#8a5a00", Bad: "#b3261e", Out: "#57606a"}[p.Mood]
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="20" `+
		`role="img" aria-label="DF11: %s"><title>DF11: %[2]s</title>`+
		`<rect width="%[3]d" height="20" rx="3" fill="#444"/>`+
		`<rect x="%[3]d" width="%.0[4]f" height="20" rx="3" fill="%[5]s"/>`+
		`<rect x="%[3]d" width="4" height="20" fill="%[5]s"/>`+
		`<g fill="#fff" font-family="Verdana,Geneva,sans-serif" font-size="11">`+
		`<text x="6" y="14" textLength="24">DF11</text>`+
		`<text x="%[6]d" y="14" textLength="%.0[7]f">%[2]s</text></g></svg>`+"\n",
		label+width, template.HTMLEscapeString(words), label, width, color, label+margin,
		width-2*margin)
	return b.Bytes()
}
