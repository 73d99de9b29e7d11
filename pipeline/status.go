package pipeline

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Publication is what source and target repo say about one model. No weight is read for it,
// except with Options.Samples.
type Publication struct {
	Source string
	Target string // the repo; "" if it isn't known
	Exists bool   // there is such a repo, whatever it holds
	State  State
	Newest string // the source's commit
	// Converted is the commit that the target was made from, and Weights how many of its weights
	// were verified by the runs that made them: both are claims of its manifest. OtherRules says
	// that the conversion followed other rules than this program's.
	Converted  string
	Weights    int64
	OtherRules bool
	// SourceNow is the source's name on its Hub, if that isn't the one asked for: the repo was
	// renamed. OfName is the name that the manifest has. Relicense says that the card lacks
	// Options.License.
	SourceNow, OfName string
	Relicense         bool
	// SourceBytes and ResultBytes are the sizes of the weight files, by the manifest. Published is
	// when the target's newest commit was made; zero if that isn't known.
	SourceBytes, ResultBytes int64
	Published                time.Time
	CardStays                bool // the card, or our part of it, is someone else's, so a conversion doesn't renew it
	// CardIsStale says that such a card names commits, but not the converted one.
	CardIsStale bool
	// Read and Publish limit what a conversion reads and publishes, in bytes.
	Read, Publish int64
}

// A State says what a repo holds of a conversion.
type State string

// The states.
const (
	// Current is all that a conversion would publish.
	Current State = State(publish.Current)
	// Outdated is a finished conversion of another commit, with other options, or by other rules.
	Outdated State = State(publish.Outdated)
	// Unfinished is a conversion that has begun, or whose files were removed or changed.
	Unfinished State = State(publish.Unfinished)
	// Absent is no repo, or nothing in it.
	Absent State = State(publish.Missing)
	// Foreign is a model that this program did not make.
	Foreign State = State(publish.Foreign)
)

// Status compares what the target repo holds with what Convert with these options and Push would
// publish. It changes nothing. After an error, the publication has what is known.
func Status(ctx context.Context, source string, opt Options) (Publication, error) {
	opt.Push = true
	p, err := status(ctx, source, opt)
	return p, opt.ended(ctx, err)
}

func status(ctx context.Context, source string, opt Options) (p Publication, err error) {
	p.Source = source
	if err := opt.checkTarget(); err != nil {
		return p, err
	}
	s, err := opt.Means.begin(budget.ForConversion)
	if err != nil {
		return p, err
	}
	defer s.close()
	defer func() { err = s.judged(err) }()
	at, _, err := s.upToDate(ctx, &opt, source)
	if err != nil {
		return p, err
	}
	if at != nil {
		p.Target, p.Newest, p.State, p.Exists = at.At.Repo, at.Source.SHA, Current, true
		p.nameSource(at.Source.ID)
		p.describe(at.Manifest, at.Published)
		return p, nil
	}
	src, err := s.open(ctx, source, opt.Recipe, opt.OnHub)
	if err != nil {
		return p, err
	}
	defer src.Close()
	p.Newest = src.model.Commit
	if !src.model.Local {
		p.nameSource(src.model.ID)
	}
	push, err := s.push(ctx, &opt, src.model.Name)
	if err != nil {
		return p, err
	}
	p.Target = push.Repo
	if err := p.compare(ctx, src.plan, src.model, push, s.shares.Budget, opt.License); err != nil ||
		p.State == Current || p.State == Foreign {
		return p, err
	}
	if opt.Samples {
		if err := s.sample(ctx, src); err != nil {
			return p, err
		}
	}
	return p, refusedPush(src, opt.License)
}

// refusedPush returns why a conversion would not be published, as far as no weight shows it.
func refusedPush(src *opened, license string) error {
	outputs, err := spans.Outputs(src.plan)
	if err != nil {
		return err
	}
	return cmp.Or(convert.CheckSource(src.model, src.plan, license), convert.CheckLimits(src.plan, outputs))
}

// compare compares what a repo holds with what a conversion would publish, within a memory budget.
func (p *Publication) compare(ctx context.Context, planned *plan.Plan, m *model.Model,
	push *publish.Push, memory int64, license string) error {
	outputs, err := spans.Outputs(planned)
	if err != nil {
		return err
	}
	p.Read, p.Publish = planned.SourceBytes(), spans.LikelyBytes(outputs)
	run := publish.NewConversion(planned, publish.OriginOf(m), "", false)
	run.Memory = memory
	state, in, err := push.State(ctx, run, m)
	p.Exists = in != nil
	if p.State = State(state); in == nil || in.Manifest == nil {
		return err
	}
	p.CardStays, p.CardIsStale = in.CardStays(), in.CardIsStale()
	p.describe(in.Manifest, in.Published)
	if state == publish.Current && license != "" {
		card, err := in.Card(ctx)
		if err != nil {
			return err
		}
		if card != nil && !metadata.HasLicense(card, license) {
			state = publish.Outdated
			p.State, p.Relicense = Outdated, true
		}
	}
	if state == publish.Outdated && hasOutputs(in.Manifest, run.Digests) {
		p.Read, p.Publish = 0, 0 // only small files differ
	}
	return nil
}

// nameSource notes the name that the source's Hub has for it.
func (p *Publication) nameSource(id string) {
	if asked, _, _ := strings.Cut(p.Source, "@"); !strings.EqualFold(asked, id) {
		p.SourceNow = id
	}
}

// hasOutputs reports whether a manifest lists every weight file that a plan would make, made of the
// same bytes. digests are those of the plan.
func hasOutputs(m *metadata.Manifest, digests map[string]string) bool {
	listed := m.Listed()
	for path, digest := range digests {
		if listed[path].Digest != digest {
			return false
		}
	}
	return true
}

// describe adds what a manifest says about the conversion, and when the target changed last.
func (p *Publication) describe(m *metadata.Manifest, at time.Time) {
	p.Converted, p.OtherRules, p.Published = m.Source.Commit, m.Plan.Rules != plan.Rules, at
	p.OfName = m.Source.Repo
	p.Weights = m.Verified()
	for _, f := range m.Source.Files {
		p.SourceBytes += f.Size
	}
	for _, f := range m.Outputs {
		if f.Kind.Weights() {
			p.ResultBytes += f.Size
		}
	}
}
