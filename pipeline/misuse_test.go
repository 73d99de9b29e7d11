package pipeline_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// A value that's misspelled is refused before anything is asked or written. It's never taken for
// another one: "Private" isn't public.
func TestMisspelledOptions(t *testing.T) {
	for name, o := range map[string]pipeline.Options{
		"visibility":  {Push: true, Visibility: "Private"},
		"GPU":         {Means: pipeline.Means{GPU: "required"}},
		"workers":     {Means: pipeline.Means{Workers: -1}},
		"memory":      {Means: pipeline.Means{Memory: -1}},
		"disk":        {Disk: -1},
		"rate":        {Means: pipeline.Means{Hubs: &pipeline.Hubs{RateLimit: -1}}},
		"shards":      {Part: 3, Parts: 2, Push: true},
		"no --push":   {Visibility: pipeline.Private},
		"half a part": {Part: 1, Push: true},
		"version":     {Means: pipeline.Means{Version: "1\r\nX: y"}},
	} {
		if _, err := pipeline.Convert(t.Context(), t.TempDir(), o); !errors.Is(err, pipeline.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name that neither the source nor the catalog has is the caller's mistake, and no sign that the
// source can't be converted: a list that expects that would pass with it. The hint names what there
// is. A pattern dict that doesn't exist is a file's error, in every call.
func TestUnknownNames(t *testing.T) {
	server := hubtest.Start(t)
	server.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{}))
	server.AddRepo("org/pipe", map[string][]byte{
		"model_index.json":                                []byte(`{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]}`),
		"transformer/config.json":                         []byte(`{"_class_name": "FluxTransformer2DModel"}`),
		"transformer/diffusion_pytorch_model.safetensors": []byte("x"),
	})
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_TOKEN", "hf_tester")
	folder := filepath.Join(t.TempDir(), "DF11")
	o := pipeline.Options{Folder: folder}
	if _, err := pipeline.Convert(t.Context(), "org/model", o); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source string
		recipe pipeline.Recipe
		hint   string
		want   pipeline.Kind
	}{
		{"org/model", pipeline.Recipe{Like: "lama-untied"}, "llama-untied", pipeline.ErrUsage},
		{"org/model", pipeline.Recipe{Like: "zzzz"}, "plan shows", pipeline.ErrUsage},
		{"org/model", pipeline.Recipe{File: "modle.safetensors"}, "model.safetensors", pipeline.ErrUsage},
		{"org/model", pipeline.Recipe{Component: "unet"}, "--component", pipeline.ErrUsage},
		{"org/pipe", pipeline.Recipe{Component: "tranformer"}, "transformer", pipeline.ErrUsage},
		{"org/pipe", pipeline.Recipe{File: "tranformer/diffusion_pytorch_model.safetensors"}, "transformer", pipeline.ErrUsage},
		{"org/model", pipeline.Recipe{PatternDict: "typo.json"}, "", pipeline.ErrUsage},
	} {
		_, planned := pipeline.Plan(t.Context(), tt.source, pipeline.PlanOptions{Options: pipeline.Options{Recipe: tt.recipe}})
		_, converted := pipeline.Convert(t.Context(), tt.source, pipeline.Options{Recipe: tt.recipe, Folder: filepath.Join(t.TempDir(), "x")})
		_, status := pipeline.Status(t.Context(), tt.source, pipeline.Options{Recipe: tt.recipe, Repo: "me/x"})
		errs := map[string]error{"plan": planned, "convert": converted, "status": status}
		if tt.source == "org/model" {
			_, errs["verify"] = pipeline.Verify(t.Context(), folder, pipeline.VerifyOptions{Recipe: tt.recipe, Against: tt.source})
			_, errs["decode"] = pipeline.Decode(t.Context(), folder, pipeline.DecodeOptions{Recipe: tt.recipe, Against: tt.source, Folder: filepath.Join(t.TempDir(), "x")})
		}
		for call, err := range errs {
			if e := pipeline.ErrorOf(err); e == nil || e.Kind != tt.want || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("%s %+v: %#v", call, tt.recipe, e)
			}
		}
	}
}

func TestMisspelledLevel(t *testing.T) {
	_, err := pipeline.Verify(t.Context(), t.TempDir(), pipeline.VerifyOptions{Level: "bogus"})
	if !errors.Is(err, pipeline.ErrUsage) {
		t.Error(err)
	}
}

// A panic of the caller's Progress ends the call as a panic that the caller can recover.
func TestProgressPanics(t *testing.T) {
	source := t.TempDir()
	for name, b := range hubtest.NewLlama(1, hubtest.ModelOptions{}).Files() {
		if err := os.WriteFile(filepath.Join(source, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, err := pipeline.Convert(t.Context(), source, pipeline.Options{Folder: filepath.Join(t.TempDir(), "x"),
		Means: pipeline.Means{Progress: func(pipeline.Progress) { panic("mine") }}})
	t.Errorf("no panic, %v", err)
}

// Hints make sense for errors that no request has returned, and name options by their names if no
// variable has set them.
func TestHintsWithoutFacts(t *testing.T) {
	odd := regexp.MustCompile(`  | / |//?\.|[{}]|^set to |from( |$)is`)
	for _, err := range []error{hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrEntryNotFound, hub.ErrUnauthorized, hub.ErrGated,
		hub.ErrForbidden, hub.ErrQuota, hub.ErrDisabled, hub.ErrCard, hub.ErrTooMany, hub.ErrTooLarge, hub.ErrRateLimited, hub.ErrOffline,
		hub.ErrChanged, hub.ErrCorrupt, hub.ErrConflict, hub.ErrMissingObject, hub.ErrUnsafePath, hub.ErrNotHub, hub.ErrTrustedPublisher, hub.ErrArgument} {
		if e := pipeline.ErrorOf(err); odd.MatchString(e.Hint) || strings.HasPrefix(e.Hint, " ") {
			t.Errorf("%v: %q", err, e.Hint)
		}
	}
	for name, c := range map[string]hub.Connection{"Hubs.Options.Endpoint": {Endpoint: "ftp://x"}, "Hubs.Options.Token": {Token: "a b"}} {
		_, err := pipeline.Plan(t.Context(), "org/model", pipeline.PlanOptions{Options: pipeline.Options{
			Means: pipeline.Means{Hubs: &pipeline.Hubs{Options: &hub.Options{Connection: c}}}}})
		if e := pipeline.ErrorOf(err); e == nil || e.Kind != pipeline.ErrUsage || !strings.Contains(e.Hint, name) || strings.Contains(e.Error(), "command line") {
			t.Errorf("%s: %v, %q", name, e, e.Hint)
		}
	}
}

// An Error of a caller's own has a text.
func TestErrorWithoutCause(t *testing.T) {
	if got := (&pipeline.Error{Kind: pipeline.ErrGated}).Error(); got != "gated" {
		t.Error(got)
	}
}

// A call without Hubs of its caller leaves no connection behind.
func TestCallsCloseTheirConnections(t *testing.T) {
	server := hubtest.Start(t)
	server.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{}))
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_HOME", t.TempDir())
	connected := func() int {
		b := make([]byte, 1<<20)
		return strings.Count(string(b[:runtime.Stack(b, true)]), "net/http.(*persistConn).readLoop(")
	}
	t.Setenv("HF_TOKEN", "hf_tester")
	t.Chdir(t.TempDir())
	before := connected()
	for _, call := range []struct {
		name string
		make func() error
	}{
		{"Plan", func() error { return second(pipeline.Plan(t.Context(), "org/model", pipeline.PlanOptions{})) }},
		{"Status", func() error { return second(pipeline.Status(t.Context(), "org/model", pipeline.Options{Repo: "me/m"})) }},
		{"Convert", func() error {
			return second(pipeline.Convert(t.Context(), "org/model", pipeline.Options{Push: true, Repo: "me/m"}))
		}},
		{"Inspect", func() error { return second(pipeline.Inspect(t.Context(), "me/m", pipeline.InspectOptions{})) }},
		{"Verify", func() error { return second(pipeline.Verify(t.Context(), "me/m", pipeline.VerifyOptions{})) }},
		{"Decode", func() error { return second(pipeline.Decode(t.Context(), "me/m", pipeline.DecodeOptions{})) }},
		{"Check", func() error { o := pipeline.Options{Push: true, Repo: "me/m"}; return o.Check() }},
		{"an error", func() error {
			if second(pipeline.Plan(t.Context(), "org/none", pipeline.PlanOptions{})) == nil {
				return errors.New("it's there")
			}
			return nil
		}},
	} {
		if err := call.make(); err != nil {
			t.Errorf("%s: %v", call.name, err)
		}
		for range 100 { // they end soon, not at once
			if connected() <= before {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if n := connected() - before; n > 0 {
			t.Errorf("%s: %d connections are left", call.name, n)
			before += n
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Calls at once leave the limits of the garbage collector as they found them.
func TestCollectorIsRestored(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			_, err := pipeline.Plan(t.Context(), t.TempDir(),
				pipeline.PlanOptions{Options: pipeline.Options{Means: pipeline.Means{Memory: 128 << 20}}})
			if err == nil {
				t.Error("an empty folder is planned")
			}
		})
	}
	calls.Wait()
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("the memory limit is %d, was %d", now, limit)
	}
}
