package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// A model is read by its pinned commit: small files whole, large ones in order.
func Example_read() {
	srv := hubtest.New()
	defer srv.Close()
	srv.AddRepo("org/model", map[string][]byte{"config.json": []byte("{}"), "model.safetensors": []byte("0123456789")})

	ctx := context.Background()
	c, err := hub.New(hub.Options{Endpoint: srv.URL})
	if err != nil {
		log.Fatal(err)
	}
	info, err := c.Info(ctx, "org/model", "main")
	if err != nil {
		log.Fatal(err, "\nhint: ", hub.Hint(err))
	}
	small, _ := info.File("config.json")
	config, err := c.ReadFile(ctx, small, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	weights, _ := info.File("model.safetensors")
	s, err := c.Stream(ctx, weights, 0, weights.Size)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	data, err := io.ReadAll(s)
	fmt.Println(string(config), string(data), err)
	// Output: {} 0123456789 <nil>
}

// Files are uploaded first; one commit makes them visible, and is built anew
// when the branch has moved.
func Example_publish() {
	srv := hubtest.New()
	defer srv.Close()

	ctx := context.Background()
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_example", TokenSource: "HF_TOKEN"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.CreateRepo(ctx, "user/model-DF11", nil); err != nil {
		log.Fatal(err, "\nhint: ", hub.Hint(err))
	}
	data := []byte("encoded weights")
	sum := sha256.Sum256(data)
	for {
		op, err := c.Upload(ctx, "user/model-DF11", "main", hub.Blob{Path: "layer_0.safetensors",
			Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Reader: bytes.NewReader(data)})
		if err != nil {
			log.Fatal(err)
		}
		_, err = c.Commit(ctx, "user/model-DF11", "main", hub.CommitRequest{Summary: "add layer 0", Ops: []hub.Op{op}})
		if errors.Is(err, hub.ErrConflict) {
			continue // someone else committed: look again, then repeat
		}
		fmt.Println(err)
		break
	}
	tree, err := c.Tree(ctx, "user/model-DF11", "main")
	fmt.Println(tree["layer_0.safetensors"].Size, err)
	// Output:
	// <nil>
	// 15 <nil>
}
