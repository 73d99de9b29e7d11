package hub_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// Read a model by its pinned commit: small files whole, large ones in order.
func Example_read() {
	srv := hubtest.New()
	defer srv.Close()
	srv.AddRepo("org/model", map[string][]byte{"config.json": []byte("{}"), "model.safetensors": []byte("0123456789")})

	ctx := context.Background()
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL}})
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
