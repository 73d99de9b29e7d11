package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestASignalThatComesTwiceIsOne checks that work stops in order if a wrapper sends its signal both
// to the program and to its process group. A second Ctrl-C of the user ends the process.
func TestASignalThatComesTwiceIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c, ended := make(chan os.Signal, 2), false
		go func() {
			awaitSecond(c, cancel)
			ended = true
		}()
		for _, x := range []struct {
			after time.Duration
			ends  bool
		}{{0, false}, {0, false}, {time.Millisecond, false}, {2 * oneSignal, true}} {
			time.Sleep(x.after)
			c <- os.Interrupt
			synctest.Wait()
			if ended != x.ends || !errors.Is(context.Cause(ctx), errInterrupted) {
				t.Errorf("after another %v: process ended %v, cause %v", x.after, ended, context.Cause(ctx))
			}
		}
	})
}
