package hub_test

import (
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

func TestBranchLifeAndDeletions(t *testing.T) {
	w := published(t)
	if _, err := w.push(t, "old.safetensors", pattern(1000)); err != nil {
		t.Fatal(err)
	}
	head, err := w.Head(t.Context(), target, "main")
	if err != nil {
		t.Fatal(err)
	}
	const branch = "df11-convert/0123abc"
	for range 2 {
		if err := w.CreateBranch(t.Context(), target, branch, head); err != nil {
			t.Fatal(err)
		}
	}
	op, err := w.Upload(t.Context(), target, branch, blob("new.safetensors", pattern(30_000)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Client.Commit(t.Context(), target, branch, hub.CommitRequest{Summary: "s",
		Ops: []hub.Op{op, hub.FileOp(".df11/part.json", []byte("{}"))}}); err != nil {
		t.Fatal(err)
	}
	if w.srv.Head(target, "main") != head {
		t.Error("main moved")
	}
	done, err := w.Client.Commit(t.Context(), target, branch, hub.CommitRequest{Summary: "s",
		Ops: []hub.Op{hub.DeleteOp("old.safetensors"), hub.DeleteOp(".df11/part.json")}})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := w.Tree(t.Context(), target, done.OID)
	if _, there := tree["new.safetensors"]; err != nil || !there || len(tree) != 2 {
		t.Errorf("%+v, %v", tree, err)
	}
	names, err := w.Branches(t.Context(), target)
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	for range 2 {
		if err := w.DeleteBranch(t.Context(), target, branch); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDuplicateOnTheHub(t *testing.T) {
	w := newWorldOn(t, hubtest.Start(t, hubtest.WithXetHashes()), 5000)
	if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	tree, err := w.Tree(t.Context(), source, "main")
	if err != nil {
		t.Fatal(err)
	}
	entry := tree[weight]
	failed, err := w.DuplicateFiles(t.Context(), source, target, []hub.FileInfo{entry})
	if err != nil || len(failed) != 0 {
		t.Fatal(failed, err)
	}
	if _, err := w.Client.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: "s",
		Ops: []hub.Op{hub.LFSOp(weight, entry.SHA256, entry.Size)}}); err != nil {
		t.Fatal(err)
	}
	w.holds(t, weight, w.data)
	if w.nPuts() != 0 {
		t.Errorf("%d PUTs", w.nPuts())
	}
	const route, limit = "*/lfs-files/duplicate", 500 // files in one call
	w.srv.ResetLog()
	failed, err = w.DuplicateFiles(t.Context(), source, target, slices.Repeat([]hub.FileInfo{entry}, limit+1))
	if err != nil || len(failed) != 0 || w.srv.Count("POST", route) != 2 {
		t.Errorf("%d files: %v, %v, %d calls", limit+1, failed, err, w.srv.Count("POST", route))
	}
}
