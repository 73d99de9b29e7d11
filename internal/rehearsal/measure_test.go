//go:build linux

package rehearsal

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestPeakRSSIsOfTheProgramAlone: what is measured of a small program is small, however much memory its parent has. The
// maximum that the system keeps for an ended process is not.
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

// TestEverything: two repos that differ in nothing but how their source files were checked are the same; a file that was
// checked in another way than the rest is told.
func TestEverything(t *testing.T) {
	s := hubtest.Start(t)
	p := &program{hub: s}
	holds := func(text string) {
		s.AddRepo(target, map[string][]byte{manifest: []byte(text), "README.md": []byte("card")})
	}
	holds(`{"integrity": "streamed"}, {"integrity": "streamed"}`)
	one, err := p.everything("streamed", 2)
	if err != nil || len(one) != 3 {
		t.Fatal(one, err)
	}
	s.RemoveRepo(target)
	holds(`{"integrity": "proof"}, {"integrity": "proof"}`)
	parts, err := p.everything("proof", 2)
	if err != nil || len(parts) != 3 || parts[manifest] != one[manifest] || parts["README.md"] != one["README.md"] {
		t.Error(parts, one, err)
	}
	if _, err := p.everything("proof", 3); err == nil {
		t.Error("a file is missing")
	}
	if _, err := p.everything("streamed", 2); err == nil {
		t.Error("none was streamed")
	}
}
