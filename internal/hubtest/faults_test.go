package hubtest

import (
	"strings"
	"testing"
	"time"
)

// TestFaultRules checks when a rule acts, and on what.
func TestFaultRules(t *testing.T) {
	s := Start(t)
	s.AddRepo("me/m", map[string][]byte{"a.txt": []byte("a")})
	teapot := Status(418, nil, "")
	get := func() int { return ask(t, "GET", s.URL+"/me/m/resolve/main/a.txt", "", "").status }
	s.Inject(Fault{Name: "mine", Method: "GET", Path: "/me/*/a.txt", Nth: 2, Times: 2, Action: teapot})
	for i, status := range []int{200, 418, 418, 200} {
		if got := get(); got != status {
			t.Errorf("request %d: got %d, want %d", i+1, got, status)
		}
	}
	if q := s.Requests()[1]; q.Fault != "mine" || q.Status != 418 || q.Seq != 2 || q.Method != "GET" {
		t.Errorf("log: %+v", q)
	}
	s.ClearFaults()
	for _, name := range FaultNames() { // what each does is for the tests of hub to say
		if DescribeFault(name) == "" {
			t.Errorf("%s is not described", name)
		}
	}
	for spec, times := range map[string]int{"cut": 0, "cut:3": 3, "cut:always": Always} {
		if f, err := ParseFault(spec); err != nil || f.Name != "cut" || f.Times != times {
			t.Errorf("%s: got %+v, %v", spec, f, err)
		}
	}
	for _, spec := range []string{"nope", "cut:0", "cut:-1", "cut:0.5", "cut:x", "cut:"} {
		if _, err := ParseFault(spec); err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
}

// TestBrokenServer checks that a panic in a fault's action or in a route is noticed, and that Close
// ends an answer that stalls.
func TestBrokenServer(t *testing.T) {
	s := New()
	s.Inject(Fault{Action: func(*Exchange) { panic("broken") }})
	if a := ask(t, "GET", s.URL+"/x", "", ""); a.err == nil || len(s.Violations()) != 1 || !strings.Contains(s.Violations()[0], "broken") {
		t.Errorf("%v, violations: %q", a.err, s.Violations())
	}
	s.Inject(Fault{Name: "hub-stall"})
	go func() {
		for s.FaultsActed("hub-stall") == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		s.Close()
	}()
	if a := ask(t, "GET", s.URL+"/api/models/me/m", "", ""); a.err == nil {
		t.Error("the stalled request ended well")
	}
}
