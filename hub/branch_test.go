package hub_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestBranchIsLookedFor checks that the branch itself decides: a 409 to its creation may mean
// another operation, and a 404 to its deletion a hub without the route.
func TestBranchIsLookedFor(t *testing.T) {
	w := published(t)
	head := w.srv.Head(target, "main")
	for _, tc := range []struct {
		fault hubtest.Fault
		call  func() error
		there bool
		fails bool
	}{
		{hubtest.Fault{Name: "branch-409"}, func() error { return w.CreateBranch(t.Context(), target, "next", head) }, true, false},
		{hubtest.Fault{Name: "branch-409"}, func() error { return w.CreateBranch(t.Context(), target, "next", head) }, true, false},
		{hubtest.Fault{Name: "no route", Method: "DELETE", Action: noDeletion}, func() error { return w.DeleteBranch(t.Context(), target, "next") }, true, true},
		{hubtest.Fault{Name: "branch-404-after"}, func() error { return w.DeleteBranch(t.Context(), target, "next") }, false, false},
	} {
		w.srv.Inject(tc.fault)
		err := tc.call()
		if acted := w.srv.FaultsActed(tc.fault.Name); acted == 0 {
			t.Errorf("%s did not act", tc.fault.Name)
		}
		if there := w.srv.Head(target, "next") == head; there != tc.there || (err != nil) != tc.fails {
			t.Errorf("%s: the branch is there: %t, error %v", tc.fault.Name, there, err)
		}
		w.srv.ClearFaults()
	}
}

// noDeletion answers as a hub without the route.
var noDeletion = hubtest.Status(404, hubtest.Header{"Content-Type": "text/html"}, "<html><body>Not Found</body></html>")
