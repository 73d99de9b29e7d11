package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// startHub starts a Hub in this process, with one model.
func startHub() *hubtest.Server {
	server := hubtest.New()
	server.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{}))
	return server
}

// client returns a client with the token of the user "me".
func client(endpoint string) (*hub.Client, error) {
	return hub.New(hub.Options{
		Connection: hub.Connection{Endpoint: endpoint, Token: "hf_demo", TokenSource: "this example"},
	})
}

// Read a small file of a model's newest commit. Its hash is checked.
func Example() {
	server := startHub()
	defer server.Close()
	c, err := client(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	info, err := c.Info(ctx, "org/model", "main")
	if err != nil {
		fmt.Println(err)
		return
	}
	config, _ := info.File("config.json")
	b, err := c.ReadFile(ctx, config, 1<<20)
	fmt.Println(strings.Contains(string(b), `"model_type": "llama"`), err)
	// Output: true <nil>
}

// Publish a file: upload it, then commit it. The parent says which commit the change is made for.
func ExampleClient_Commit() {
	server := startHub()
	defer server.Close()
	c, err := client(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := c.CreateRepo(ctx, "me/notes", nil); err != nil {
		fmt.Println(err)
		return
	}
	parent, err := c.Head(ctx, "me/notes", "main")
	if err != nil {
		fmt.Println(err)
		return
	}
	text := "A note.\n"
	ops, err := c.Upload(ctx, "me/notes", "main",
		hub.Blob{Path: "note.txt", Size: int64(len(text)), Reader: strings.NewReader(text)})
	if err != nil {
		fmt.Println(err)
		return
	}
	commit, err := c.Commit(ctx, "me/notes", "main",
		hub.CommitRequest{Summary: "Add a note", Parent: parent, Ops: ops})
	fmt.Println(len(commit.OID), err)
	// Output: 40 <nil>
}

// An error says what was asked and what came back, is of a kind, and has a hint.
func ExampleError() {
	server := startHub()
	defer server.Close()
	c, err := client(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Info(context.Background(), "org/modle", "main")
	var e *hub.Error
	if errors.As(err, &e) {
		fmt.Println(e.Op, e.Status)
	}
	fmt.Println(errors.Is(err, hub.ErrNotFound))
	fmt.Println(strings.SplitN(hub.Hint(err), ";", 2)[0])
	// Output:
	// read model info of org/modle 404
	// true
	// check the spelling of "org/modle"
}
