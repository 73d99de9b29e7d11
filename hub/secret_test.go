package hub_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// TestOptionsHideTheirSecrets checks that options can be printed and logged.
func TestOptionsHideTheirSecrets(t *testing.T) {
	o := hub.Options{Connection: hub.Connection{Token: "hf_secret", Side: "source"}, CacheDir: "/cache",
		Publisher: &hub.Publisher{Resource: "me/m", Identity: "secret", RequestToken: "secret"}}
	for _, x := range []any{o, &o, o.Connection, &o.Connection, o.Publisher, []hub.Options{o}, map[string]any{"o": &o}} {
		var log bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			fmt.Fprintf(&log, verb+"\n", x)
		}
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "x", x)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("JSON", "x", x)
		if text := log.String(); strings.Contains(text, "secret") {
			t.Errorf("%T: %s", x, text)
		}
	}
	if text := fmt.Sprintf("%+v", o); !strings.Contains(text, "CacheDir:/cache") || !strings.Contains(text, "Side:source") ||
		!strings.Contains(text, "Publisher:me/m") {
		t.Error(text)
	}
}

// TestNothingSecretIsLogged checks with every named fault that the most detailed log, the waits,
// and the errors show neither the token nor a signed link. The test hub fails the test if the token
// reaches the storage host.
func TestNothingSecretIsLogged(t *testing.T) {
	for _, fault := range hubtest.FaultNames() {
		if strings.Contains(fault, "stall") || fault == "slow" {
			continue // patience ends them; TestStalls has them
		}
		t.Run(fault, func(t *testing.T) {
			var log lockedBuffer
			w := newWorld(t, 10_000, func(o *hub.Options) {
				o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				o.OnWait = func(w hub.Wait) { _, _ = log.Write([]byte(w.Reason + "\n")) }
			})
			w.srv.Inject(hubtest.Fault{Name: fault, Times: 3})
			check := func(err error) {
				if err != nil {
					_, _ = log.Write([]byte(err.Error() + " " + hub.Hint(err) + "\n"))
				}
			}
			_, err := w.Info(t.Context(), source, "main")
			check(err)
			_, err = w.ReadFile(t.Context(), hub.FileRef{Repo: source, Commit: w.commit, Path: weight}, 10_000)
			check(err)
			_, err = w.CreateRepo(t.Context(), target, nil)
			check(err)
			for _, size := range []int{15_000, 50_000} {
				_, err = w.push(t, weight, pattern(size))
				check(err)
			}
			_, err = w.Tree(t.Context(), source, "main")
			check(err)
			text := log.b.String()
			if len(text) == 0 {
				t.Error("nothing was logged")
			}
			for _, secret := range []string{"hf_test", "Bearer", "X-Amz-", "Signature", "?x", "&", "key="} {
				if strings.Contains(text, secret) {
					t.Errorf("the log shows %q: %s", secret, text)
				}
			}
		})
	}
}
