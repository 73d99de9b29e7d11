package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// startHub starts a Hub in this process, with the repo Qwen/Qwen3-8B, which is tiny here. The options
// name the Hub and the token; without them, the environment does.
func startHub() (*hubtest.Server, pipeline.Means) {
	server := hubtest.New()
	server.AddModel("Qwen/Qwen3-8B", hubtest.NewQwen3(1, hubtest.ModelOptions{}))
	return server, pipeline.Means{Hubs: &pipeline.Hubs{Options: &hub.Options{
		Connection: hub.Connection{Endpoint: server.URL, Token: "hf_demo", TokenSource: "this example"},
	}}}
}

// Convert a model of the Hub and publish the result under the name of the token's owner.
func ExampleConvert() {
	server, means := startHub()
	defer server.Close()
	report, err := pipeline.Convert(context.Background(), "Qwen/Qwen3-8B",
		pipeline.Options{Push: true, Means: means})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s has %d modules in DF11\n", report.Target.Repo, report.Sizes.Units)
	fmt.Println("every weight was compared:", report.Verified.Now &&
		report.Verified.Weights == report.Sizes.Weights)
	// Output:
	// tester/Qwen3-8B-DF11 has 4 modules in DF11
	// every weight was compared: true
}

// Tell one failure from another, and show what to do.
func ExampleConvert_errors() {
	server, means := startHub()
	defer server.Close()
	_, err := pipeline.Convert(context.Background(), "Qwen/Qwen4",
		pipeline.Options{Push: true, Means: means})
	switch {
	case errors.Is(err, pipeline.ErrNotConvertible):
		fmt.Println("DF11 can't hold this model")
	case errors.Is(err, pipeline.ErrNotFound):
		fmt.Println("there is no such model")
	}
	var e *pipeline.Error
	if errors.As(err, &e) {
		fmt.Printf("%s: %.34s …\n", e.Kind, e.Hint)
	}
	var request *hub.Error
	if errors.As(err, &request) {
		fmt.Println(request.Op, request.Status)
	}
	// Output:
	// there is no such model
	// not_found: check the spelling of "Qwen/Qwen4" …
	// read model info of Qwen/Qwen4 404
}

// Forecast a conversion.
func ExamplePlan() {
	server, means := startHub()
	defer server.Close()
	forecast, err := pipeline.Plan(context.Background(), "Qwen/Qwen3-8B",
		pipeline.PlanOptions{Options: pipeline.Options{Means: means}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(forecast.Layout, len(forecast.Units), forecast.Entry)
	// Output: transformers 4 qwen3-untied
}

// Verify a result against the model that it names as its original, and decode it.
func ExampleVerify() {
	server, means := startHub()
	defer server.Close()
	ctx := context.Background()
	if _, err := pipeline.Convert(ctx, "Qwen/Qwen3-8B",
		pipeline.Options{Push: true, Means: means}); err != nil {
		fmt.Println(err)
		return
	}
	report, err := pipeline.Verify(ctx, "tester/Qwen3-8B-DF11", pipeline.VerifyOptions{Means: means})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("equal:", report.Equal.Shown(), "by", report.Level)
	// Output: equal: true by proof
}

// Write the original files again. Their SHA-256 is the original's.
func ExampleDecode() {
	server, means := startHub()
	defer server.Close()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	df11 := filepath.Join(dir, "Qwen3-8B-DF11")
	if _, err := pipeline.Convert(ctx, "Qwen/Qwen3-8B",
		pipeline.Options{Folder: df11, Means: means}); err != nil {
		fmt.Println(err)
		return
	}
	report, err := pipeline.Decode(ctx, df11,
		pipeline.DecodeOptions{Folder: filepath.Join(dir, "again"), Means: means})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Files, "file")
	// Output: 1 file
}
