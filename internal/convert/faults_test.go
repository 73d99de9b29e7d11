package convert_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// ends are the faults on which a conversion ends, and with which error; all others it survives.
// Behind a comma stands how often the fault acts, if it is not once. What each call of the client
// does is in hub's own TestFaults.
var ends = map[string]error{
	"504, always":              errAny,
	"429-bare, always":         hub.ErrRateLimited,
	"bad-token":                hub.ErrUnauthorized,
	"short, always":            errAny,
	"corrupt, always":          errSource,
	"400-range":                errAny,
	"416, always":              hub.ErrChanged,
	"etag-changed, always":     hub.ErrChanged,
	"no-commit, always":        hub.ErrNotHub,
	"no-size, always":          nil, // the list of files has it
	"redirect-scheme":          errAny,
	"gated-401":                hub.ErrGated,
	"gated-403":                hub.ErrGated,
	"entry-404":                hub.ErrEntryNotFound,
	"repo-401":                 hub.ErrNotFound,
	"repo-404":                 hub.ErrNotFound,
	"revision-404":             hub.ErrRevisionNotFound,
	"link-origin":              hub.ErrNotHub,
	"tree-bad-hash":            hub.ErrNotHub,
	"tree-bad-path":            hub.ErrUnsafePath,
	"batch-quota":              hub.ErrQuota,
	"lfs-error":                errAny,
	"lfs-quota":                hub.ErrQuota,
	"lfs-no-actions, always":   hub.ErrMissingObject,
	"lfs-part-count":           hub.ErrNotHub,
	"lfs-chunk-size":           hub.ErrNotHub,
	"lfs-chunk-zero":           hub.ErrNotHub,
	"verify-mismatch":          hub.ErrCorrupt,
	"commit-500-after, always": nil,
	"commit-400-lfs, always":   hub.ErrMissingObject,
	"commit-429, always":       hub.ErrRateLimited,
	"commit-quota":             hub.ErrQuota,
	"commit-race, always":      hub.ErrConflict,
	"create-403":               hub.ErrForbidden,
}

// Wishes of ends that are not one error.
var (
	errAny    = errors.New("any error")
	errSource = errors.New("a file that was read three times")
)

// inStream is a read of weights that are on their way through the stages: those before it are of
// headers.
const inStream = 7

// reads are the faults of what the storage host sends.
var reads = strings.Fields("cdn-500 cdn-503 reset cut short chunked corrupt ignore-range wrong-range gzip 400-range expired slow stall stall-header 416")

const always = hubtest.Always

// elsewhere are the faults that no conversion of TestFaults can meet, with the test that holds
// them.
var elsewhere = map[string]string{
	"mirror": "it leads to the public hub; hub tests it with one of its own",
}

// TestFaults checks that with each fault of the test hub, a conversion ends with the right bytes or
// the right error. It shows no token, leaves nothing running, and publishes no config.json
// early. After a failure, the same call without the fault ends with the right bytes.
func TestFaults(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	all := slices.Sorted(maps.Keys(ends))
	for _, name := range hubtest.FaultNames() {
		if _, ok := ends[name]; !ok && elsewhere[name] == "" {
			all = append(all, name)
		}
	}
	for _, name := range all {
		t.Run(strings.ReplaceAll(name, ", ", "_"), func(t *testing.T) {
			fault, often, _ := strings.Cut(name, ", ")
			f, w, work := hubtest.Fault{Name: fault}, newWorld(t, small(), hubtest.WithMultipart(10_000, 6_000), listening), t.TempDir()
			// which file is first depends on chance, and small ones have no parts
			if often == "always" || strings.HasPrefix(fault, "lfs-part") || strings.HasPrefix(fault, "lfs-chunk") {
				f.Times = always
			}
			if slices.Contains(reads, fault) {
				f.Nth = inStream
			}
			// which end only by the client's patience
			if strings.Contains(fault, "stall") || fault == "slow" {
				w.hub = append(w.hub, func(o *hub.Options) { o.StallTimeout = 400 * time.Millisecond })
			}
			w.Inject(f)
			_, err := w.convert(t.Context(), t, work)
			checkFault(t, w, fault, err, ends[name])
			if err != nil {
				w.ClearFaults()
				if _, err := w.convert(t.Context(), t, work); err != nil {
					t.Fatalf("again, without the fault: %v", err)
				}
			}
			got := w.target()
			delete(got, "race.txt") // which somebody else has committed meanwhile
			sameFiles(t, got, want)
			noGoroutines(t)
		})
	}
}

// checkFault compares how a conversion ended with what is wanted.
func checkFault(t *testing.T, w *world, fault string, err, want error) {
	t.Helper()
	noSecret(t, err)
	if w.FaultsActed(fault) == 0 {
		t.Error("the fault did not act")
	}
	switch {
	case want == nil && err == nil:
		return
	case errors.Is(want, errAny) && err != nil:
	case errors.Is(want, errSource) && err != nil && strings.Contains(err.Error(), "read 3 times"):
	case want == nil || !errors.Is(err, want):
		t.Fatalf("error %v, want %v", err, want)
	}
	w.unfinished(t)
}
