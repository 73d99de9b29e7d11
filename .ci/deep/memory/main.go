// Command memory runs a program and fails if it needed more memory than it was allowed. It can also make the model that
// the program is given: Llama-shaped, with weights that look trained. It judges nothing else about the program.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

func main() {
	model := flag.String("model", "", "folder in which to make the model; nothing is run")
	layers := flag.Int("layers", 1, "layers of the model, 2 GB each")
	limit := flag.Int64("limit-mib", 0, "largest resident set that the command may have, in MiB")
	flag.Parse()
	var err error
	if *model != "" {
		err = llama(*layers).Write(*model)
	} else {
		err = measure(*limit, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// llama is a model whose layers have 1.02 thousand million weights each, all of them one unit.
func llama(layers int) *hubtest.Model {
	return hubtest.NewLlama(1, hubtest.ModelOptions{
		Layers: layers, Hidden: 8192, Intermediate: 30720, Heads: 64, KVHeads: 64, Vocab: 1024,
	})
}

// measure runs a command and compares the peak of its resident set with the limit.
func measure(limitMiB int64, args []string) error {
	if len(args) == 0 {
		return errors.New("no command given")
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	if err := c.Run(); err != nil {
		return err
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not tell how much memory a process had")
	}
	peak := usage.Maxrss / 1024 // Linux counts in KiB
	fmt.Printf("peak %d MiB of %d MiB, %.1f s, %.1f s of processor time\n", peak, limitMiB,
		time.Since(start).Seconds(), (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
	if peak > limitMiB {
		return fmt.Errorf("the limit is %d MiB, the peak was %d MiB", limitMiB, peak)
	}
	return nil
}
