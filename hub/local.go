package hub

import (
	"errors"
	"net"
	"strings"
	"syscall"
)

// localFault gives the refusal by this machine's own system that err tells of, 0 if there is none. The network is not at
// fault then, and a repeat meets the same refusal.
func localFault(err error) syscall.Errno {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT,
		syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, e) || isLookup && strings.Contains(lookup.Err, e.Error()) { // a look-up has its cause in words only
			return e
		}
	}
	return 0
}

// localHint is the next step after a refusal by the system.
func localHint(err error) string {
	switch localFault(err) {
	case syscall.EMFILE:
		return "this process may open too few files at once: allow more with `ulimit -n 1024`, then run the same command again"
	case syscall.ENFILE:
		return "all programs of this machine together have too many files open: close some, or raise the system's limit"
	case syscall.EACCES, syscall.EPERM:
		if isA[*net.OpError](err) {
			return "this machine does not allow the connection: check the rules of its firewall"
		}
	}
	return ""
}
