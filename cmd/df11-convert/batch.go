package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

// The outcomes of models that a batch converted, or tried to. Others have the state of their
// publication.
const (
	outcomeConverted = "converted"
	outcomePart      = "part" // made by --shard
	outcomeFailed    = "failed"
	outcomeStopped   = "stopped"   // by a signal or --stop-after, while it was converted
	outcomeNotTried  = "not_tried" // the list ended before
)

// batchResult is the outcome for one model.
type batchResult struct {
	Source  string           `json:"source"`
	Outcome string           `json:"outcome"`
	Error   *failure         `json:"error,omitempty"`
	Report  *pipeline.Report `json:"report,omitempty"`
	// Skipped is what's published, if the model wasn't converted.
	Skipped *publication `json:"skipped,omitempty"`
}

// batchReport is the outcome of a batch.
type batchReport struct {
	Outcomes  map[string]int `json:"outcomes"` // models by outcome
	Failed    map[string]int `json:"failed_by_kind"`
	Bill      *bill          `json:"bill,omitempty"` // known before the first conversion
	Read      int64          `json:"read_bytes"`
	Published int64          `json:"published_bytes"`
	Seconds   float64        `json:"seconds"`
	Models    []batchResult  `json:"models"`
}

func batchCommand(u *ui) *cobra.Command {
	var f convertFlags
	c := withArgument(&cobra.Command{
		Use:   "batch LIST",
		Short: "Convert a list of models, one after another",
		Long: `batch converts each model of a list as the main command would. With --push it
first asks the Hub what's published, prints how much it will read and publish,
and skips models whose published result is current. That takes at most half of
--stop-after. If a model fails, batch goes on with the next one. If the network,
the Hub, or the token fails, batch tries for five minutes, then ends the list. A
token that can't write ends it at once, and so does a Hub that hasn't answered
yet, because its address may be wrong.
If the Hub refuses one repo and answers for another of the list, only that
model fails.
If a namespace's storage is full, or you may not make repos there, batch leaves
out the other models that would upload weights there, and goes on with the rest.
The exit code is 0 if every model ends as expected. Otherwise it's the code of
what ended the list, or else of the first failure.

LIST is a YAML file with models: and a list below it. An entry is a Hub repo
such as org/name, or source: with any of revision, component, file, repo-id,
layout, pattern-dict or like, private, license, and expect (not_convertible).
docs/models.schema.json is its JSON schema. If LIST is -, it is read from
standard input.

Several machines can share a list: give each one a --slice of it. --shard splits
every model instead.`,
		Example: `  df11-convert batch models.yaml --push
  df11-convert batch models.yaml --push --slice 1/4  # one of four machines
  df11-convert batch models.yaml --push --json > report.json`,
	}, func(ctx context.Context, arg string) error { return runBatch(ctx, u, &f, arg) })
	f.registerListed(c.Flags(), f.register)
	return c
}

// registerListed adds --slice and the flags that register adds, except those for a single model.
func (f *convertFlags) registerListed(to *pflag.FlagSet, register func(*pflag.FlagSet)) {
	var all pflag.FlagSet
	register(&all)
	all.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(append(entryFlags, "output", "original", "include", "license"), flag.Name) {
			to.AddFlag(flag)
		}
	})
	to.StringVar(&f.slice, "slice", "",
		"take only `slice` i/n of the list; auto/n takes an array task's index")
}

// entryFlags are members of a list's entries, and so no flags of a list.
var entryFlags = []string{"repo-id", "file", "component"}

// models reads a list, checks all entries and that their targets differ, and returns this machine's
// slice.
func (f *convertFlags) models(ctx context.Context, u *ui, list string) ([]listedModel, error) {
	part, err := parsePart("--slice", f.slice)
	if err != nil {
		return nil, err
	}
	models, err := readList(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if member := m.needsPush(); member != "" && !f.target.push {
			return nil, hint.On(usagef("%s: %s in its entry: you need --push for that", m.spec(), member),
				hint.NoPush.With("member", member))
		}
		if f.target.private && m.Private != nil && !*m.Private {
			return nil, hint.On(usagef("%s: private: false in its entry contradicts --private", m.spec()),
				hint.Contradicts)
		}
		flags := m.flags(*f)
		o, err := flags.options(u)
		if err == nil {
			err = o.CheckTarget()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.spec(), err)
		}
	}
	me, only := "", ""
	mine := func(m listedModel) bool { return !strings.Contains(m.RepoID, "/") }
	if f.target.push && slices.ContainsFunc(models, mine) {
		c, err := f.client(u, "target")
		if err == nil {
			only = c.OnlyRepo()
		}
		if err == nil && only == "" {
			me, err = c.WhoAmI(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := distinct(models, cmp.Or(me, "<you>")); err != nil {
		return nil, err
	}
	for i, m := range models {
		switch {
		case m.RepoID == "" && only != "":
			models[i].repo = only
		case me != "" || !mine(m):
			models[i].repo = m.target(me)
		}
	}
	if !part.Whole() {
		models = slice(models, part)
	}
	return models, nil
}

func runBatch(ctx context.Context, u *ui, f *convertFlags, list string) error {
	ctx, done := f.limitTime(ctx)
	defer done()
	began := time.Now()
	u.list = true
	if err := f.ready(u); err != nil {
		return err
	}
	models, err := f.models(ctx, u, list)
	if err != nil {
		return err
	}
	sayEmpty(u, f, models)
	found := batchReport{Outcomes: map[string]int{}, Failed: map[string]int{}, Models: []batchResult{}}
	known, surveys := make([]publication, len(models)), f.target.push && !f.target.force
	if surveys {
		known, err = f.surveyInTime(ctx, u, models)
	}
	if err != nil {
		err = endedEarly(u, models, known, err, &found)
	} else {
		if len(known) < len(models) {
			u.say("half of the time went into looking at %d of %d models: the others are looked at when their turn comes",
				len(known), len(models))
			models, known = inTurn(models, known)
		} else if surveys {
			if found.Bill = billOf(known); found.Bill.Models > 0 {
				u.say("%s", found.Bill)
			}
		}
		err = f.convertAll(ctx, u, models, known, &found)
	}
	found.Read, found.Published, found.Seconds = u.read, u.published, time.Since(began).Seconds()
	u.result(found, strings.Join(found.places(), "\n"), func(w io.Writer) {
		printBatch(w, found)
	})
	return err
}

// errHalf is the cause of a context that ended with the time for the survey.
var errHalf = errors.New("half of --stop-after is up")

// surveyInTime is survey, but ends it after half of --stop-after: else a slot that's too short for
// a look at the whole list would convert nothing, and the next one would begin with the same look.
// Then it returns what's known of the first models.
func (f *convertFlags) surveyInTime(ctx context.Context, u *ui, models []listedModel) ([]publication,
	error) {
	if f.stopAfter == 0 {
		return f.survey(ctx, u, models)
	}
	half, done := context.WithTimeoutCause(ctx, f.stopAfter/2, errHalf)
	defer done()
	known, err := f.survey(half, u, models)
	if errors.Is(err, errHalf) && ctx.Err() == nil {
		err = nil
	}
	return known, err
}

// inTurn returns the models of a list in the order to convert them, if only the first ones are
// known. The others begin with any one, so that the last ones aren't always those for which no time
// is left.
func inTurn(models []listedModel, known []publication) ([]listedModel, []publication) {
	rest := models[len(known):]
	first := rand.IntN(len(rest))
	return slices.Concat(models[:len(known)], rest[first:], rest[:first]),
		append(known, make([]publication, len(rest))...)
}

// endedEarly adds an outcome for each model of a list that ended when the survey failed: known has
// those that it found.
func endedEarly(u *ui, models []listedModel, known []publication, err error, b *batchReport) error {
	for i, m := range models {
		switch {
		case i < len(known):
			b.add(untried(m, known[i]))
		case i == len(known) && kindOf(err).code != exitInterrupted:
			f := u.failure(err)
			b.add(batchResult{Source: m.spec(), Outcome: outcomeFailed, Error: f})
			u.complain(m.spec(), f)
			err = printedError{err}
		default:
			b.add(batchResult{Source: m.spec(), Outcome: outcomeNotTried})
		}
	}
	return err
}

// sayEmpty says that there is nothing to do for a list, or for this machine's slice of it.
func sayEmpty[T any](u *ui, f *convertFlags, models []T) {
	if len(models) == 0 && f.slice != "" {
		u.say("--slice %s: no model of the list falls to this slice", f.slice)
	} else if len(models) == 0 {
		u.say("the list has no models")
	}
}

// places lists where the results are.
func (b *batchReport) places() (list []string) {
	for _, r := range b.Models {
		if r.Report != nil {
			list = append(list, where(r.Report))
		}
	}
	return list
}

// add counts the outcome of a model.
func (b *batchReport) add(r batchResult) {
	b.Outcomes[r.Outcome]++
	if r.Error != nil && r.Outcome == outcomeFailed {
		b.Failed[r.Error.Kind]++
	}
	b.Models = append(b.Models, r)
}

// convertAll converts the models, one after another. It returns what ended the list, or else the
// first failure. In any case b has an outcome for each model.
func (f *convertFlags) convertAll(ctx context.Context, u *ui, models []listedModel,
	known []publication, b *batchReport) (first error) {
	closed := map[string]error{} // namespaces that take no more, with the reason
	answered := transform(known, func(p publication) bool { return p.Newest != "" })
	for i, m := range models {
		namespace := path.Dir(m.repo) // "." if the target isn't known, which is never closed
		if why := closed[namespace]; why != nil && known[i].isClosedBy(why) {
			b.add(batchResult{Source: m.spec(), Outcome: outcomeNotTried, Error: failureOf(why)})
			continue
		}
		u.say("%d/%d %s", i+1, len(models), m.spec())
		u.now = work{model: m.spec()}
		flags := m.flags(*f)
		var r batchResult
		surveyed := known[i].Newest != ""
		p := listPatience{f: f, u: u, worked: surveyed || i > 0, listed: surveyed,
			models: models, at: i, answered: answered}
		alike, err := p.try(ctx, func() (err error) {
			r, err = flags.convertListed(ctx, u, m, known[i])
			return err
		})
		answered[i] = answered[i] || err == nil
		ended := ctx.Err() != nil || alike
		switch {
		case err != nil && ctx.Err() != nil:
			r, first = batchResult{Source: m.spec(), Outcome: outcomeStopped}, context.Cause(ctx)
		case err != nil:
			u.complain(m.spec(), r.Error)
			if first == nil || ended {
				first = printedError{err}
			}
		}
		b.add(r)
		if errors.Is(err, hub.ErrQuota) || errors.Is(err, hub.ErrNamespace) {
			closed[namespace] = err
			u.say("the list's other models for %s aren't tried", namespace)
		}
		if !ended {
			continue
		}
		for j := range models[i+1:] {
			rest := untried(models[i+1+j], known[i+1+j])
			if rest.Outcome == outcomeNotTried && ctx.Err() != nil {
				first = context.Cause(ctx)
			}
			b.add(rest)
		}
		break
	}
	return first
}

// untried returns the outcome of a model that a list ended before.
func untried(m listedModel, p publication) batchResult {
	switch {
	case p.err != nil:
		return batchResult{Source: m.spec(), Outcome: outcomeFailed, Error: failureOf(p.err)}
	case p.final: // nothing was to do
		return batchResult{Source: m.spec(), Outcome: string(p.State), Skipped: &p}
	}
	return batchResult{Source: m.spec(), Outcome: outcomeNotTried}
}

// convertListed converts a model of a list, unless p says that this would change nothing.
func (f *convertFlags) convertListed(ctx context.Context, u *ui, m listedModel,
	p publication) (r batchResult, err error) {
	r.Source = m.spec()
	if p.Newest != "" { // convert the commit that was checked
		m.Revision = p.Newest
	}
	if err = p.err; err == nil && !p.final {
		before := p.State
		r.Report, err = convertOne(ctx, u, f, m.spec())
		if err == nil && before == pipeline.Absent && r.Report.Verified.UpToDate {
			u.say("%s: the new branch %s begins with what main holds, so nothing was to publish",
				r.Report.Target.Repo, cmp.Or(f.target.revision, "main"))
		}
		p.State = pipeline.Current // judge corrects it after an error
		p.judge(m, err)
		err = p.err
	}
	switch {
	case err != nil:
		r.Outcome, r.Error = outcomeFailed, u.failure(err)
	case r.Report == nil:
		r.Outcome, r.Skipped = string(p.State), &p
	case r.Report.Target.Part != "":
		r.Outcome = outcomePart
	case r.Report.Verified.UpToDate:
		r.Outcome = string(pipeline.Current)
	default:
		r.Outcome = outcomeConverted
	}
	return r, err
}

func printBatch(w io.Writer, b batchReport) {
	t := newTable(w)
	for _, r := range b.Models {
		about, outcome := "", r.Outcome
		switch {
		case outcome == outcomeNotTried && r.Error != nil:
			outcome, about = "not tried", r.Error.Kind
		case r.Error != nil: // complain printed it
			about = r.Error.Kind
		case outcome == outcomeStopped, outcome == outcomeNotTried:
			outcome = strings.ReplaceAll(outcome, "_", " ")
		case r.Report == nil:
			about = cmp.Or(r.Skipped.Target, none)
		default:
			about = where(r.Report)
			outcome = cmp.Or(strings.ReplaceAll(r.Report.Target.Part, "-", " "), outcome)
			if before, after := r.Report.Sizes.BF16, r.Report.Sizes.DF11; after > 0 {
				about += fmt.Sprintf(", %s → %s (%.1f%%)", human.Bytes(before), human.Bytes(after),
					human.Percentage(after, before))
			}
		}
		printf(t, "%s\t%s\t%s\n", outcome, r.Source, about)
	}
	t.Flush()
	for _, outcome := range slices.Sorted(maps.Keys(b.Outcomes)) {
		text := choose(outcome == outcomeNotTried, "not tried", outcome)
		printf(w, "%d %s, ", b.Outcomes[outcome], text)
	}
	printf(w, "%s read, %s published, in %.1f s\n", human.Bytes(b.Read),
		human.Bytes(b.Published), b.Seconds)
	if b.Outcomes[outcomePart] > 0 {
		printf(w, "when all parts are uploaded, run this with --finish instead of --shard\n")
	}
}
