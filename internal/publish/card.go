package publish

import (
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// cardMarks is what an inspection found in a card that isn't ours as a whole.
type cardMarks struct {
	part    string   // SHA-256 of our part; "" if there's none or it was edited
	marked  bool     // it has our part
	commits []string // that the card names
}

// CardStays reports whether the run leaves the card alone: someone else wrote it, or edited our part.
func (in *Inspection) CardStays() bool { return in.Files[names.Card].Standing == LeftAlone }

// CardIsStale reports whether a card that stays names commits, but not the one that was converted.
func (in *Inspection) CardIsStale() bool {
	return in.CardStays() && in.Manifest != nil && in.Manifest.Source.Commit != "" &&
		len(in.card.commits) > 0 && !slices.Contains(in.card.commits, in.Manifest.Source.Commit)
}

// commitsIn lists the commits that a card names, and SHA-256 sums, which look like some of them.
func commitsIn(card []byte) []string {
	other := func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' }
	words := strings.FieldsFunc(string(card), other)
	return slices.DeleteFunc(words, func(w string) bool { return !names.IsCommit(w) })
}

// WhyCardStays says for people why the run doesn't touch the card; "" if it does.
func (in *Inspection) WhyCardStays() string {
	switch {
	case !in.CardStays():
		return ""
	case in.card.part != "":
		return "the front matter of the card of " + in.Where + " can't be read, so the card stays as it is"
	case in.card.marked:
		return "our part of the card of " + in.Where + " was edited, so it stays as it is"
	}
	return "the card of " + in.Where + " is not of this program and stays as it is"
}

// Card returns the card if we may renew it, or a part of it; nil if there's none.
func (in *Inspection) Card(ctx context.Context) ([]byte, error) {
	switch in.Files[names.Card].Standing {
	case Ours, Shared:
		return in.contents.read(ctx, names.Card, maxCardBytes)
	}
	return nil, nil
}

// maxCardBytes bounds a card that a run renews. A larger one isn't ours.
const maxCardBytes = 1 << 20

// cardIsCurrent reports whether our part of a shared card is the one that the manifest lists.
func (in *Inspection) cardIsCurrent() bool {
	return in.Files[names.Card].Standing != Shared || in.card.part != "" &&
		slices.ContainsFunc(in.Manifest.Outputs,
			func(f metadata.OutputFile) bool { return f.Part == in.card.part })
}

// cardStanding decides about a card that isn't ours as a whole. The marks must be there, and around
// what we wrote.
func (x *inspector) cardStanding(ctx context.Context) (Standing, error) {
	if x.now.contents.size(names.Card) > maxCardBytes {
		return LeftAlone, nil
	}
	card, err := x.now.contents.read(ctx, names.Card, maxCardBytes)
	if err != nil {
		return LeftAlone, err
	}
	x.in.card = cardMarks{metadata.CardPart(card), metadata.HasMark(card),
		commitsIn(card)}
	if metadata.UpdateCard(card, card) == nil {
		return LeftAlone, nil
	}
	return Shared, nil
}
