package wire

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestRefusalsOfThisMachineAreNeverBlamedOnTheNetwork: what the own system
// refuses is told at once, and its hint does not send people to their provider.
func TestRefusalsOfThisMachineAreNeverBlamedOnTheNetwork(t *testing.T) {
	dial := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", e)}
	}
	for _, tt := range []struct {
		name string
		err  error
		hint string
	}{
		{"EMFILE", dial(syscall.EMFILE), "ulimit -n"},
		{"EMFILE of a look-up", &net.DNSError{Err: "dial udp: socket: " + syscall.EMFILE.Error(), Name: "hub.test"}, "ulimit -n"},
		{"ENFILE", dial(syscall.ENFILE), "limit"},
		{"EACCES", dial(syscall.EACCES), "firewall"},
		{"EPERM", dial(syscall.EPERM), "firewall"},
		{"ENOMEM", dial(syscall.ENOMEM), ""},
		{"ENOSPC", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ""},
		{"EDQUOT", &os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, ""},
		{"EROFS", &os.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, ""},
	} {
		w := script(breaks(tt.err))
		c, clock := testTransport(t, w)
		_, err := whoAmI(t.Context(), c)
		if !errors.Is(err, tt.err) || w.Count() != 1 || clock.Waited() != 0 {
			t.Errorf("%s: %d requests, %v waited, %v", tt.name, w.Count(), clock.Waited(), err)
		}
		if h := Hint(err); !strings.Contains(h, tt.hint) || strings.Contains(h, "network") {
			t.Errorf("%s: hint %q", tt.name, h)
		}
	}
	for _, passing := range []error{syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.ETIMEDOUT, syscall.EPIPE} {
		if !TemporaryNetwork(passing) {
			t.Errorf("%v is not repeated", passing)
		}
	}
}
