package main

import (
	"os/exec"
	"runtime"
	"testing"
)

// TestPeakRSSIsOfTheProgramAlone checks that the measured peak of a small program is small, however
// much memory its parent has. The maximum that the system keeps for an ended process isn't.
func TestPeakRSSIsOfTheProgramAlone(t *testing.T) {
	const ballast = 128 << 20
	big := make([]byte, ballast)
	for i := range len(big) / 4096 {
		big[4096*i] = 1
	}
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip("no cat to start: ", err)
	}
	n := peakRSS(c.Process.Pid)
	in.Close()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if n == 0 || n > ballast/2 {
		t.Errorf("cat has %d bytes", n)
	}
	if n := peakRSS(c.Process.Pid); n != 0 {
		t.Errorf("an ended program has %d bytes", n)
	}
	runtime.KeepAlive(big)
}
