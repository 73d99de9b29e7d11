package pipeline_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// faultWorld is a hub on which every kind of request happens: uploads in one piece and in parts.
func faultWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, small(), hubtest.WithMultipart(10_000, 6_000))
}

// waits tells whether a fault ends only by the client's patience. Its conversions then run with little of it, and as a
// busy machine may use that up without any fault, their requests are not counted.
func waits(fault string) bool { return strings.Contains(fault, "stall") || fault == "slow" }

// impatient makes the clients of a world give up soon.
func impatient(w *world) {
	w.hub = append(w.hub, func(o *hub.Options) {
		o.HeaderTimeout, o.IdleTimeout = 400*time.Millisecond, 400*time.Millisecond
	})
}

// Rows of faultCases: what a conversion does when a fault acts.
type faultCase struct {
	nth   int // which match is spoiled; 0 is the first
	times int // 0 is once
	// want is the error that the conversion must end with; nil is success with the same bytes as ever.
	want error
	// extra is how many requests more than usual a success takes.
	extra int
	hint  string // part of the hint that a user gets for the error
}

// inStream is a match that lies behind the headers: weights that are on their way through the stages.
const inStream = 7

const always = hubtest.Always

// faultCases lists every named fault of the test hub; some stand twice, under "name, second case".
var faultCases = map[string]faultCase{
	// any route of the hub
	"429-ratelimit":           {extra: 1},
	"429-retry-after":         {nth: 30, extra: 1},
	"429-http-date":           {nth: 40, extra: 1},
	"429-bare":                {nth: 50, extra: anyNumber}, // on the second leg of a redirect both are repeated
	"429-bare, always":        {nth: 30, times: always, want: hub.ErrRateLimited, hint: "goes on where it stopped"},
	"500":                     {nth: 25, extra: 1},
	"502":                     {nth: 35, extra: 1},
	"503":                     {nth: 45, extra: 1},
	"504":                     {extra: 1},
	"504, always":             {nth: 30, times: always, want: errAny, hint: "goes on where it stopped"},
	"hub-reset":               {nth: 28, extra: 1},
	"hub-stall":               {extra: 1},
	"warning":                 {},
	"no-auth-check":           {times: always}, // the commit decides
	"no-card-check":           {times: always},
	"bad-token":               {want: hub.ErrUnauthorized, hint: "wrong or expired"},
	"bad-token, half way":     {nth: 20, want: hub.ErrUnauthorized, hint: "wrong or expired"},
	"warning, always":         {times: always},
	"429-retry-after, thrice": {nth: 30, times: 3, extra: 3},

	// bytes of the source
	"cdn-500":               {nth: inStream, extra: 1},
	"cdn-503":               {nth: inStream, extra: 1},
	"cdn-503, always":       {nth: inStream, times: always, want: errAny, hint: "goes on where it stopped"},
	"reset":                 {nth: inStream, extra: 1},
	"cut":                   {nth: inStream, extra: 1},
	"short, always":         {nth: inStream, times: always, want: errAny, hint: "goes on where it stopped"},
	"short":                 {nth: inStream, extra: 1},
	"chunked":               {nth: inStream, extra: 1},
	"corrupt":               {nth: inStream, extra: anyNumber}, // the file's sha256 tells, and it is read again
	"corrupt, always":       {nth: inStream, times: always, want: errSource},
	"corrupt, in a header":  {extra: 1},
	"ignore-range":          {nth: inStream},
	"wrong-range":           {nth: inStream, extra: 1},
	"gzip":                  {nth: inStream, extra: 1},
	"gzip, always":          {nth: inStream, times: always, want: errAny},
	"400-range":             {nth: inStream, want: errAny},
	"expired":               {nth: inStream, extra: 2}, // the link is asked for anew
	"expired, always":       {nth: inStream, times: always, want: errAny},
	"slow":                  {nth: inStream, extra: 1},
	"stall":                 {nth: inStream, extra: 1},
	"stall-header":          {nth: inStream, extra: 1},
	"416":                   {nth: inStream, extra: anyNumber}, // the file is read again
	"416, always":           {nth: inStream, times: always, want: hub.ErrChanged, hint: "reads the file anew"},
	"etag-changed, always":  {times: always, want: hub.ErrChanged},
	"etag-changed":          {},
	"commit-changed, later": {nth: 3, times: always, want: hub.ErrChanged},
	"commit-changed":        {},
	"no-commit":             {},
	"no-commit, always":     {times: always, want: hub.ErrNotHub, hint: "proxy"},
	"size-changed":          {},
	"size-changed, always":  {times: always, want: hub.ErrChanged},
	"no-size":               {times: always}, // the list of files tells it
	"redirect-loop":         {extra: 1},
	"redirect-loop, always": {times: always, want: hub.ErrNotHub},
	"redirect-host":         {want: hub.ErrNotHub, hint: "proxy"},
	"redirect-port":         {want: hub.ErrNotHub, hint: "proxy"},
	"redirect-scheme":       {want: hub.ErrNotHub, hint: "proxy"},
	"gated-401":             {want: hub.ErrGated, hint: "access"},
	"gated-403":             {want: hub.ErrGated, hint: "request access"},
	"entry-404":             {want: hub.ErrEntryNotFound},
	"disabled":              {want: hub.ErrDisabled, hint: "operators"},
	"repo-401":              {want: hub.ErrNotFound, hint: "spelling"},
	"repo-404":              {want: hub.ErrNotFound, hint: "spelling"},
	"revision-404":          {want: hub.ErrRevisionNotFound, hint: "revision"},

	// the target
	"link-origin":            {want: hub.ErrNotHub},
	"tree-bad-hash":          {times: always, want: hub.ErrNotHub, hint: "proxy"},
	"tree-duplicate":         {},
	"tree-empty":             {},
	"tree-bad-path":          {want: hub.ErrUnsafePath},
	"batch-500":              {extra: 1},
	"batch-quota":            {want: hub.ErrQuota, hint: "storage"},
	"lfs-error":              {want: errAny},
	"lfs-429":                {extra: 1},
	"lfs-503":                {extra: 1},
	"lfs-503, always":        {times: always, want: errAny, hint: "goes on where it stopped"},
	"lfs-quota":              {want: hub.ErrQuota, hint: "storage"},
	"lfs-no-actions":         {extra: anyNumber}, // the commit tells, and the file is sent again
	"lfs-no-actions, always": {times: always, want: hub.ErrMissingObject},
	"lfs-part-count":         {want: hub.ErrNotHub},
	"lfs-chunk-size":         {want: hub.ErrNotHub},
	"lfs-chunk-zero":         {want: hub.ErrNotHub},
	"put-500":                {extra: 1},
	"put-500, always":        {times: always, want: errAny, hint: "goes on where it stopped"},
	"put-503":                {extra: 1},
	"put-timeout":            {extra: 1},
	"put-expired":            {extra: anyNumber}, // a fresh batch, and its parts
	"put-expired, always":    {times: always, want: errAny},
	"put-token":              {extra: anyNumber},
	"put-no-upload":          {extra: anyNumber},
	"put-reset":              {extra: 1},
	"put-reset-after":        {extra: 1},
	"put-no-etag":            {extra: 1},
	"put-wrong-etag":         {extra: anyNumber},
	"complete-400":           {extra: anyNumber},
	"complete-500":           {extra: 1},
	"complete-after":         {extra: 1},
	"verify-404":             {extra: 1},
	"verify-500":             {extra: 1},
	"verify-mismatch":        {want: hub.ErrCorrupt},
	"commit-412":             {extra: anyNumber}, // head, tree, again
	"commit-409":             {extra: anyNumber},
	"commit-race":            {extra: anyNumber},
	"commit-500":             {extra: anyNumber},
	"commit-500-after":       {extra: 6},
	"commit-504-after":       {extra: 6},
	"commit-reset-after":     {extra: 6},
	"commit-500-after, each": {times: always, extra: 8},
	"commit-400-lfs":         {extra: anyNumber},
	"commit-400-lfs, always": {times: always, want: hub.ErrMissingObject},
	"commit-quota":           {want: hub.ErrQuota, hint: "storage"},
	"commit-429":             {extra: 1},
	"commit-429, always":     {times: always, want: hub.ErrRateLimited, hint: "later"},
	"create-409":             {extra: 1},
	"create-403":             {want: hub.ErrForbidden, hint: "write access"},
}

// elsewhere are the faults that no conversion of this package can meet in a test's time, with the test that holds them.
var elsewhere = map[string]string{
	"branch-409":       "it takes a refresh; hub tests it",
	"branch-404-after": "it takes a refresh; hub tests it",
	"mirror":           "it leads to the public hub; hub tests it with one of its own",
}

// Wishes of faultCase that are not one error.
var (
	errAny    = errors.New("any error")
	errSource = errors.New("a pipeline.BrokenSourceError")
)

const anyNumber = -1

// TestFaults: with each fault, a conversion ends with the right bytes or with the right error, makes as many requests as
// it must and no more, shows no token, leaves nothing running, and never a config.json on the way. Where it failed, the
// same call without the fault ends with the right bytes.
func TestFaults(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	base := faultWorld(t)
	base.mustConvert(t)
	nRequests := len(base.Requests())
	for _, name := range slices.Sorted(maps.Keys(faultCases)) {
		t.Run(strings.ReplaceAll(name, ", ", "_"), func(t *testing.T) {
			tt, fault := faultCases[name], strings.SplitN(name, ",", 2)[0]
			w, work := faultWorld(t), t.TempDir()
			if waits(fault) {
				impatient(w)
			}
			w.Inject(hubtest.Fault{Name: fault, Nth: tt.nth, Times: tt.times})
			_, err := w.convert(t.Context(), t, work)
			checkFault(t, w, tt, fault, err)
			if extra := len(w.Requests()) - nRequests; err == nil && tt.extra != anyNumber && !waits(fault) && extra != tt.extra {
				t.Errorf("%d requests more than usual, want %d", extra, tt.extra)
			}
			if err != nil {
				w.ClearFaults()
				if _, err := w.convert(t.Context(), t, work); err != nil {
					t.Fatalf("again, without the fault: %v", err)
				}
			}
			sameTarget(t, w, want)
			noGoroutines(t)
		})
	}
}

// checkFault compares the outcome of a conversion with what is wanted.
func checkFault(t *testing.T, w *world, tt faultCase, fault string, err error) {
	t.Helper()
	noSecret(t, err)
	namesOnce(t, err)
	if w.FaultsActed(fault) == 0 {
		t.Error("the fault did not act")
	}
	source := (*pipeline.BrokenSourceError)(nil)
	switch {
	case tt.want == nil && err == nil:
		return
	case errors.Is(tt.want, errAny) && err != nil:
	case errors.Is(tt.want, errSource) && errors.As(err, &source):
	case tt.want == nil || !errors.Is(err, tt.want):
		t.Fatalf("error %v, want %v", err, tt.want)
	}
	if !strings.Contains(hub.Hint(err), tt.hint) {
		t.Errorf("hint %q of %v", hub.Hint(err), err)
	}
	w.unfinished(t)
}

// sameTarget compares the target with the reference; what somebody else committed meanwhile does not count.
func sameTarget(t *testing.T, w *world, want map[string]hubtest.File) {
	t.Helper()
	got := w.target()
	delete(got, "race.txt")
	sameFiles(t, got, want)
}

// TestFaultsComplete: every fault of the test hub has its case.
func TestFaultsComplete(t *testing.T) {
	for _, name := range hubtest.FaultNames() {
		if _, ok := faultCases[name]; !ok && elsewhere[name] == "" {
			t.Errorf("no case for %s: %s", name, hubtest.DescribeFault(name))
		}
	}
}

// TestCorruptHeader: a header that is broken on its way is noticed, also where it still is a header: the plan would be
// another one than the file's.
func TestCorruptHeader(t *testing.T) {
	oneFile := func() *hubtest.Model { return hubtest.NewLlama(9, hubtest.ModelOptions{Hidden: 32, Vocab: 256}) }
	want := reference(t, oneFile())
	w := newWorld(t, oneFile())
	c := w.client(t)
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Times: always, Action: renameTensor})
	src, known, err := model.OpenHub(t.Context(), c, sourceRepo, "", plan.Options{})
	w.ClearFaults()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), known.Listing, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) { o.Source, o.Model, o.Plan = src, known, p })
	if h := (*fetch.HeaderError)(nil); !errors.As(err, &h) {
		t.Errorf("a broken header: %v", err)
	}
	w.unfinished(t)
	w.mustConvert(t)
	sameFiles(t, w.target(), want)
}
