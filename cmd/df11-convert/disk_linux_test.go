package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestWhatMustBeFreeIsEnough checks that a disk with as much free as plan says must be free is
// enough, with --push alone and for a folder, and that one with much less is refused before a
// weight moves, with the same number.
func TestWhatMustBeFreeIsEnough(t *testing.T) {
	s := startHub(t, "hf_any")
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 256, Vocab: 4096, Layers: 4, ShardBytes: 3 << 20}))
	var doc, header struct{ Needs pipeline.Needs }
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", "org/model", "--json")), &doc))
	// the manifest keeps headers, which may be larger than the weights
	long := llamaFiles("BF16", 0, "")
	var err error
	long["model.safetensors"], err = withMetadata(long["model.safetensors"], `{"x":"`+strings.Repeat("a", 3<<20)+`"}`)
	world.Must(t, err)
	s.AddRepo("org/header", long)
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", "org/header", "--json")), &header))
	if up := header.Needs.Upload; up < 3<<20 {
		t.Errorf("the upload leaves out the manifest: %d bytes", up)
	}
	if !strings.Contains(must(t, "plan", "org/header"), "; df11-manifest.json adds about 3.16 MB") {
		t.Error("plan doesn't say how much the manifest adds:\n", must(t, "plan", "org/header"))
	}
	// what a file takes beyond its bytes: at most a page each; and journals and index
	const spare = 512 << 10
	for _, c := range []struct {
		name string
		need int64
		args []string
	}{
		{"push", doc.Needs.DiskLeast, []string{"org/model", "--push", "--repo-id", "REPO", "--work-dir"}},
		{"folder", doc.Needs.DiskFolderFree, []string{"org/model", "-o"}},
		{"header", header.Needs.DiskFolderFree, []string{"org/header", "-o"}},
	} {
		for _, free := range []int64{c.need + spare, c.need / 2} {
			t.Run(fmt.Sprint(c.name, free), func(t *testing.T) {
				dir := t.TempDir()
				if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", free)); err != nil {
					t.Skipf("NOT TESTED: no small disk can be mounted: %v", err)
				}
				defer func() { world.Must(t, syscall.Unmount(dir, 0)) }()
				args := strings.Split(strings.ReplaceAll(strings.Join(c.args, " "), "REPO", fmt.Sprint("tester/at-", free)), " ")
				code, _, diag := program(t, append(args, dir+"/at")...)
				if (code == exitOK) != (free > c.need) {
					t.Errorf("%d free of %d: exit %d\n%s", free, c.need, code, diag)
				}
				if free < c.need && !strings.Contains(diag, human.BytesUp(c.need)+" needed") {
					t.Errorf("want %s: %s", human.BytesUp(c.need), diag)
				}
			})
		}
	}
}

// TestDecodeNamesAFullDisk checks that decode refuses a disk that is too small before it decodes.
func TestDecodeNamesAFullDisk(t *testing.T) {
	s := startHub(t, "hf_any")
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 256, Vocab: 4096, Layers: 4}))
	made, small := t.TempDir(), t.TempDir()
	must(t, "org/model", "-o", made+"/df11")
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED: no small disk can be mounted: %v", err)
	}
	defer func() { world.Must(t, syscall.Unmount(small, 0)) }()
	code, _, diag := program(t, "decode", made+"/df11", "-o", small+"/bf16")
	if code != exitError || !strings.Contains(diag, "1.05 MB free, at least ") || strings.Contains(diag, "decode 0%") {
		t.Errorf("exit %d\n%s", code, diag)
	}
	if left := world.ReadAll(t, small); len(left) > 0 {
		t.Errorf("left behind: %d files", len(left))
	}
}

// TestFinishedOnAReadOnlyDisk checks that a result that's complete needs no folder that can be
// written to, and that anything else is refused there before a weight moves.
func TestFinishedOnAReadOnlyDisk(t *testing.T) {
	s := startHub(t, "hf_any")
	s.AddModel("org/model", smallModel(1))
	s.AddModel("org/other", smallModel(2))
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Skipf("NOT TESTED: no disk can be mounted: %v", err)
	}
	defer func() { world.Must(t, syscall.Unmount(dir, 0)) }()
	made, back := dir+"/df11", dir+"/bf16"
	must(t, "org/model", "-o", made)
	must(t, "decode", made, "-o", back)
	world.Must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	before := world.ReadAll(t, dir)
	if out := must(t, "org/model", "-o", made); !strings.Contains(out, "up to date") {
		t.Error(out)
	}
	must(t, "decode", made, "-o", back)
	for _, args := range []string{"org/model -o MADE --force", "org/other -o MADE", "org/model -o NEW", "org/model -o MADE --push",
		"decode MADE -o NEW", "decode MADE -o MADE/.."} {
		args = strings.NewReplacer("MADE", made, "NEW", dir+"/new").Replace(args)
		code, _, diag := program(t, strings.Fields(args)...)
		if code != exitError || !strings.Contains(diag, "read-only file system") || !strings.Contains(diag, hint.FolderReadOnly.With("flag", "-o").String()) {
			t.Errorf("%s: exit %d\n%s", args, code, diag)
		}
	}
	if after := world.ReadAll(t, dir); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Error("the disk has changed")
	}
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, "/repos/create") {
			t.Error("a repo was made for a result that can't be published")
		}
	}
}
