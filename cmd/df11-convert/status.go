package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

// The states of models that no target can be compared with.
const (
	stateRefused pipeline.State = "not_convertible"
	stateFailed  pipeline.State = "failed"
	stateUnknown pipeline.State = "unknown" // the list ended before
)

// publication is what source and target repo say about one model.
type publication struct {
	Source    string         `json:"source"`
	Target    string         `json:"target,omitempty"`
	State     pipeline.State `json:"state"`
	Todo      bool           `json:"todo"`                       // a run could change something
	Newest    string         `json:"newest_commit,omitempty"`    // of the source
	SourceNow string         `json:"source_now,omitempty"`       // its name, if it was renamed
	Converted string         `json:"converted_commit,omitempty"` // the target was made from
	Weights   int64          `json:"weights_verified,omitempty"` // by its conversion, says the manifest
	CardStays bool           `json:"card_stays,omitempty"`       // a run doesn't renew the card
	// the card names commits, but not the converted one
	CardIsStale bool `json:"card_stale,omitempty"`
	// sizes of the weight files, by the manifest
	SourceBytes int64      `json:"source_bytes,omitempty"`
	ResultBytes int64      `json:"result_bytes,omitempty"`
	Published   *time.Time `json:"published,omitempty"` // the target's newest commit
	Error       *failure   `json:"error,omitempty"`
	// Entry is what the list says of the model. A batch doesn't print it.
	Entry *listedModel `json:"entry,omitempty"`

	err    error  // Error as a value
	repo   string // Target, also if an error came before that was compared
	final  bool   // no run would change the target
	exists bool   // there is a target, whatever it holds
	// the target was made by other rules than this program's
	otherRules bool
	ofName     string // of the source, in the target's manifest
	relicense  bool   // the target's card lacks the entry's license
	// limits for what a conversion reads and publishes, in bytes
	read, publish int64
}

// bill is what a batch moves, at most.
type bill struct {
	Models  int   `json:"models"` // to convert
	Read    int64 `json:"read_bytes"`
	Publish int64 `json:"publish_bytes"` // the account stores as much in addition
}

func billOf(found []publication) *bill {
	var b bill
	for _, p := range found {
		if p.Todo {
			b.Models++
			b.Read += p.read
			b.Publish += p.publish
		}
	}
	return &b
}

func (b *bill) String() string {
	if b.Read+b.Publish == 0 {
		return human.Count(b.Models, "model") + " to update: only small files change"
	}
	return fmt.Sprintf("%s to convert: at most %s to read, about %s to publish and store",
		human.Count(b.Models, "model"), human.Bytes(b.Read), human.Bytes(b.Publish))
}

func statusCommand(u *ui) *cobra.Command {
	f := convertFlags{target: targetFlags{push: true}} // the list has the rest
	var pages pageFlags
	c := withArgument(&cobra.Command{
		Use:   "status LIST",
		Short: "Show which models of a list are published and current",
		Long: `status reads a list as batch does and plans each model. It shows whether the
published result is current, which commit it was made from, and how many weights
were verified then, according to its manifest. It also shows what a batch would
read and publish, and which targets the token may not write to, if the Hub says
so. It changes nothing on a Hub. --html writes it all as a page that a team can
link, and --badges a picture per model for a README. If the network, the Hub, or
the token fails, it shows what it knows by then. The exit code is 0 if batch has
nothing to do and every model is as expected, else 1.`,
		Example: `  df11-convert status models.yaml
  df11-convert status models.yaml --html status.html --badges badges
  df11-convert status models.yaml --json`,
	}, func(ctx context.Context, arg string) error { return runStatus(ctx, u, &f, pages, arg) })
	pages.register(c.Flags())
	f.registerListed(c.Flags(), func(p *pflag.FlagSet) {
		f.sourceFlags.register(p)
		f.target.registerListed(p)
	})
	f.limits.registerMemory(c.Flags())
	return c
}

func runStatus(ctx context.Context, u *ui, f *convertFlags, pages pageFlags, list string) error {
	if err := checkPage(pages.html); err != nil {
		return err
	}
	if o, err := f.options(u); err != nil {
		return err
	} else if err := o.CheckTarget(); err != nil {
		return err
	}
	models, err := f.models(ctx, u, list)
	if err != nil {
		return err
	}
	found, ended := f.survey(ctx, u, models)
	if ended == nil {
		f.checkRights(ctx, u, found)
	}
	sayEmpty(u, f, models)
	shown := found
	for _, m := range models[len(found):] {
		shown = append(shown, publication{Source: m.spec(), State: stateUnknown, repo: m.repo})
	}
	for i := range shown {
		shown[i].Entry = &models[i]
	}
	b, failed := billOf(found), 0
	var todo []string
	for _, p := range found {
		if p.Error != nil {
			failed++
		}
		if p.Todo {
			todo = append(todo, p.Source)
		}
	}
	u.result(map[string]any{"bill": b, "models": shown}, strings.Join(todo, "\n"), func(w io.Writer) {
		printStatus(w, found, u.out.width())
		if left := len(shown) - len(found); left > 0 {
			printf(w, "%s not asked about, because the list ended early\n", human.Count(left, "model"))
		}
		if b.Models > 0 {
			printf(w, "%s\n", b)
		}
	})
	adviseOn(u, found)
	if err := pages.write(u, list, shown, f.links(ctx, u)); err != nil && ended == nil {
		return err
	}
	switch {
	case ended != nil:
		return ended
	case b.Models+failed > 0:
		return fmt.Errorf("%w on %d of %s: %d to convert, %d failed", errNotCurrent,
			b.Models+failed, human.Count(len(found), "model"), b.Models, failed)
	}
	return nil
}

// checkRights marks the models that a run would convert, but not publish, as the Hub says.
func (f *convertFlags) checkRights(ctx context.Context, u *ui, found []publication) {
	c, err := f.client(u, "target")
	if err != nil {
		return
	}
	for i := range found {
		p := &found[i]
		if !p.Todo || p.repo == "" {
			continue
		}
		if err := c.CheckRight(ctx, p.repo, p.exists); err != nil {
			p.Todo, p.err = false, inList(err)
			p.Error = failureOf(p.err)
		}
	}
}

// adviseOn prints the hints about models, each one once, after the table.
func adviseOn(u *ui, found []publication) {
	if u.json || u.jsonLog() {
		return
	}
	var said []string
	for _, p := range found {
		if p.Error == nil {
			continue
		}
		for _, h := range p.Error.hints {
			if !slices.Contains(said, h) {
				said = append(said, h)
			}
		}
	}
	u.hint(said)
}

// survey returns what's published of each model of a list, or, with the error that ends the list,
// of those before.
func (f *convertFlags) survey(ctx context.Context, u *ui, models []listedModel) ([]publication,
	error) {
	found, answered := []publication{}, make([]bool, len(models))
	for i, m := range models {
		flags := m.flags(*f)
		var p publication
		wait := listPatience{f: f, u: u, worked: i > 0, models: models, at: i, answered: answered}
		alike, err := wait.try(ctx, func() (err error) {
			p, err = flags.status(ctx, u, m)
			return err
		})
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		if alike {
			return found, err
		}
		answered[i] = err == nil
		p.judge(m, err)
		p.repo = cmp.Or(p.Target, m.repo)
		found = append(found, p)
	}
	return found, nil
}

var (
	errNotCurrent = errors.New("work needed")
	errUnexpected = errors.New("it can be converted, but its entry in the list says otherwise")
	errForeign    = errors.New("holds a model that this program didn't make")
)

// judge completes p with an error and with what the entry expects.
func (p *publication) judge(m listedModel, err error) {
	if err != nil {
		p.State = choose(kindOf(err).code == exitRefused, stateRefused, stateFailed)
	}
	expected := m.Expect != "" && p.State == stateRefused
	switch {
	case expected:
		err = nil
	case p.State == pipeline.Foreign:
		err = fmt.Errorf("%s %w", p.Target, errForeign)
	case m.Expect != "" && err == nil:
		err = errUnexpected
	}
	p.final = expected || p.State == pipeline.Current
	p.Todo = err == nil && !p.final
	err = inList(err)
	if p.err = err; err != nil {
		p.Error = failureOf(err)
	}
}

// isClosedBy reports whether the reason for which a namespace takes no more concerns the model, as
// far as the survey knows: a run may upload weights, and, if the namespace takes no new repos,
// needs one.
func (p *publication) isClosedBy(why error) bool {
	return !p.final && p.err == nil && (p.Newest == "" || p.publish > 0) &&
		(!p.exists || !errors.Is(why, hub.ErrNamespace))
}

// status returns what's published of a model. If its entry says that it can't be converted, samples
// of its weights count, too, as they do in a run.
func (f *convertFlags) status(ctx context.Context, u *ui, m listedModel) (publication, error) {
	o, err := f.options(u)
	if err != nil {
		return publication{Source: m.spec()}, err
	}
	o.Samples = m.Expect != ""
	p, err := pipeline.Status(ctx, m.spec(), o)
	found := publication{Source: p.Source, Target: p.Target, State: p.State, Newest: p.Newest,
		Converted: p.Converted, Weights: p.Weights, CardStays: p.CardStays, CardIsStale: p.CardIsStale,
		SourceBytes: p.SourceBytes, ResultBytes: p.ResultBytes,
		SourceNow: p.SourceNow, ofName: p.OfName, relicense: p.Relicense,
		otherRules: p.OtherRules, exists: p.Exists, read: p.Read, publish: p.Publish}
	if !p.Published.IsZero() {
		found.Published = &p.Published
	}
	return found, err
}

func printStatus(w io.Writer, found []publication, width int) {
	if len(found) == 0 {
		return
	}
	r := &rows{names: []string{"state", "source", "target", "commit", "verified", "needs"}}
	for _, p := range found {
		commit, verified := fmt.Sprintf("%.12s", p.Converted), ""
		if p.Weights > 0 {
			verified = human.Count(p.Weights, "weight")
		}
		r.add(p.shownState(), p.Source, cmp.Or(p.Target, none), cmp.Or(commit, none),
			cmp.Or(verified, none), cmp.Or(p.needs(), none))
	}
	r.print(w, width)
}

// none marks an empty cell of a table.
const none = "—"

// shownState returns the state as people see it: a model whose card names another commit isn't
// current as a whole.
func (p *publication) shownState() string {
	if p.State == pipeline.Current && p.CardIsStale {
		return "card stale"
	}
	return string(p.State)
}

// needs says what has to happen with the model: what a person has to look at, or why the next run
// converts it. It returns "" if nothing has to.
func (p *publication) needs() string {
	var parts []string
	switch {
	case p.State == stateUnknown:
		return "another look: the list ended before it"
	case p.Error != nil:
		parts = append(parts, strings.TrimPrefix(p.Error.Message, p.Source+": "))
	case p.State == stateRefused:
		return "nothing: it can't be converted, as its entry expects"
	case p.State == pipeline.Absent:
		parts = append(parts, "a run, to convert it")
	case p.State == pipeline.Unfinished:
		parts = append(parts, "a run, to finish it")
	case p.Converted != "" && p.Converted != p.Newest:
		parts = append(parts, fmt.Sprintf("a run: the newest commit is %.12s", p.Newest))
	case p.State == pipeline.Outdated && p.SourceNow != "" && p.ofName != p.SourceNow:
		parts = append(parts, "a run: it was converted as "+p.ofName)
	case p.State == pipeline.Outdated && p.relicense:
		parts = append(parts, "a run: its card lacks the license of the entry")
	case p.State == pipeline.Outdated && p.otherRules:
		parts = append(parts, "a run: it was converted by another version")
	case p.State == pipeline.Outdated:
		parts = append(parts, "a run: it was converted with other flags")
	}
	switch {
	case p.CardIsStale:
		parts = append(parts, "a look: its card names another commit than the converted "+
			"one; a run leaves it, because it isn't all ours")
	case p.CardStays:
		parts = append(parts, "a look: its card isn't all ours, so it stays and may be out of date")
	}
	if p.SourceNow != "" {
		parts = append(parts, fmt.Sprintf("a look: the source's name is %s now; an entry with that name "+
			"needs repo-id: %s to keep the target", p.SourceNow, p.repo))
	}
	return strings.Join(parts, "; ")
}
