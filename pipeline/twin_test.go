package pipeline_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// wanPipeline returns a pipeline with two parts of one class.
func wanPipeline() map[string][]byte {
	files := map[string][]byte{"model_index.json": []byte(
		`{"_class_name": "WanPipeline", "transformer": ["diffusers", "WanTransformer3DModel"], "transformer_2": ["diffusers", "WanTransformer3DModel"]}`)}
	for i, dir := range []string{"transformer", "transformer_2"} {
		c := world.NewCheckpoint(uint64(i))
		for b := range 2 {
			c.Block(fmt.Sprintf("blocks.%d.", b), "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn2.to_q", "attn2.to_k", "attn2.to_v",
				"attn2.to_out.0", "ffn.net.0.proj", "ffn.net.2")
		}
		files[dir+"/diffusion_pytorch_model.safetensors"] = c.File()
		files[dir+"/config.json"] = []byte(`{"_class_name": "WanTransformer3DModel", "num_layers": 2}`)
	}
	return files
}

// TestAnotherLayoutOfASecondPart checks that the DF11 result of a pipeline's second part is a source of
// another layout of that part, although the first part has the same class. That holds whether its
// original is asked or only its manifest. Another part or file of the pipeline is refused by name.
func TestAnotherLayoutOfASecondPart(t *testing.T) {
	server := hubtest.Start(t)
	server.AddRepo("org/pipe", wanPipeline())
	means := pipeline.Means{Hubs: &pipeline.Hubs{Options: &hub.Options{
		Connection: hub.Connection{Endpoint: server.URL, Token: "hf_demo", TokenSource: "this test"}}}}
	convert := func(source string, recipe pipeline.Recipe) (folder string) {
		folder = filepath.Join(t.TempDir(), "pipe-DF11")
		_, err := pipeline.Convert(t.Context(), source, pipeline.Options{Folder: folder, Means: means, Recipe: recipe})
		world.Must(t, err)
		return folder
	}
	want := world.ReadAll(t, convert("org/pipe", pipeline.Recipe{Component: "transformer_2", Layout: "diffusers-single"}))
	local := convert("org/pipe", pipeline.Recipe{Component: "transformer_2"})
	server.AddRepo("org/pipe-DF11", world.ReadAll(t, local))
	for _, source := range []string{"org/pipe-DF11", local} {
		for _, component := range []string{"", "transformer_2"} {
			got := world.ReadAll(t, convert(source, pipeline.Recipe{Component: component, Layout: "diffusers-single"}))
			for name, b := range want {
				isOurs := name == names.Card || name == names.Manifest // they name the source
				if g, ok := got[name]; !ok || !isOurs && !bytes.Equal(g, b) {
					t.Errorf("%s: %s isn't what its original gives", source, name)
				}
			}
		}
		for _, recipe := range []pipeline.Recipe{{Component: "transformer"}, {Component: "nope"}, {File: "transformer/diffusion_pytorch_model.safetensors"}} {
			recipe.Layout = "diffusers-single"
			_, err := pipeline.Plan(t.Context(), source, pipeline.PlanOptions{Options: pipeline.Options{Means: means, Recipe: recipe}})
			e := pipeline.ErrorOf(err)
			if e == nil || e.Kind != pipeline.ErrUsage || !strings.Contains(e.Error(), "was made from transformer_2") {
				t.Errorf("%s, %s%s: %v", source, recipe.Component, recipe.File, err)
			}
		}
	}
}
