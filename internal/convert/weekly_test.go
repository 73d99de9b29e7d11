package convert_test

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// A change is a commit to the source of a finished conversion.
type change struct {
	name  string
	files map[string][]byte
	// shards that have other weights, outputs that they touch, and other shards that these touch
	shards, outputs, beside []string
	writes                  []string // of the result, next to the outputs
}

// text is a change of small files.
func text(files ...string) map[string][]byte {
	list := map[string][]byte{}
	for i := 0; i < len(files); i += 2 {
		list[files[i]] = []byte(files[i+1])
	}
	return list
}

// tuned is a shard of small with another bit in its last weight.
func tuned(shard string) map[string][]byte {
	b := bytes.Clone(small().Files()[shard])
	b[len(b)-1] ^= 1
	return map[string][]byte{shard: b}
}

// refreshes has every kind.
func refreshes(t *testing.T) []change {
	t.Helper()
	config := string(small().Files()["config.json"])
	about := []string{names.Card, names.Manifest} // they name the commit
	list := []change{
		{name: "card", files: text(names.Card, "---\nlicense: mit\n---\n# A typo\n"), writes: about},
		{name: "license", files: text("LICENSE", "mit"), writes: append([]string{"LICENSE"}, about...)},
		{name: "config", files: text("config.json", strings.Replace(config, "{", `{"use_cache": false,`, 1)), writes: append([]string{"config.json"}, about...)},
		{name: "generation config", files: text("generation_config.json", `{"top_k": 2}`), writes: append([]string{"generation_config.json"}, about...)},
		{name: "a file less", files: map[string][]byte{"LICENSE": nil}, writes: append([]string{"LICENSE"}, about...)},
	}
	shard := change{name: "one shard", files: tuned(secondFile), shards: []string{secondFile}, writes: about}
	all := change{name: "all", files: retrained().Files(), writes: about}
	maps.DeleteFunc(all.files, func(name string, _ []byte) bool { return !reader.IsSafetensors(name) })
	all.shards = slices.Collect(maps.Keys(all.files))
	p := newWorld(t, small()).planned(t)
	for _, c := range []*change{&shard, &all} {
		isNew := func(file string) bool { return slices.Contains(c.shards, file) }
		for _, o := range shared.Got(spans.Outputs(p))(t) {
			var from []string
			for _, i := range o.Files() {
				from = append(from, p.Source().Weights[i].Path)
			}
			if slices.ContainsFunc(from, isNew) {
				c.outputs, c.beside = append(c.outputs, o.Path), append(c.beside, slices.DeleteFunc(from, isNew)...)
			}
		}
	}
	return append(list, shard, all)
}

// licensed is a hub with a finished conversion of small, with a license and a generation config.
func licensed(t *testing.T, change ...func(*convert.Options)) *world {
	t.Helper()
	w := newWorld(t, small())
	w.Push(sourceRepo, "main", text("LICENSE", "apache", "generation_config.json", `{"top_k": 1}`))
	w.mustConvert(t, change...)
	return w
}

// traffic is what a run moves, without what the plan reads.
type traffic struct {
	source, result int64 // bytes of weights that are read
	sent           int64 // bytes of weights that are uploaded
}

// refresh runs a conversion and returns what it has moved.
func (w *world) refresh(t *testing.T, change ...func(*convert.Options)) (*convert.Report, traffic) {
	t.Helper()
	w.ended(t, t.TempDir())
	planned := func(*convert.Options) { w.ResetLog() }
	old := w.target()
	r := w.mustConvert(t, append(change, planned)...)
	var x traffic
	isWeight := func(sum string, files map[string]hubtest.File) bool {
		return slices.ContainsFunc(weightFiles(files), func(name string) bool { return files[name].SHA256 == sum })
	}
	for _, q := range w.Requests() {
		sum := path.Base(q.Path)
		switch {
		case q.Host == hubtest.HostHub:
		case q.Method == "PUT":
			x.sent += q.Received
		case isWeight(sum, w.Files(sourceRepo, "main")):
			x.source += q.Sent
		case isWeight(sum, old) || isWeight(sum, w.target()):
			x.result += q.Sent
		}
	}
	return r, x
}

// fresh is what a conversion of a source leaves in a target that was empty.
func fresh(t *testing.T, w *world) map[string]hubtest.File {
	t.Helper()
	other := newWorld(t, nil)
	files := map[string][]byte{}
	for name := range w.Files(sourceRepo, "main") {
		files[name] = []byte(content(t, w.Server, sourceRepo, "main", name))
	}
	other.AddRepo(sourceRepo, files)
	other.mustConvert(t)
	return other.target()
}

// TestRefreshCostsWhatChanged checks that a commit to the source costs only its changes. If the
// weights are the same, no byte of them is read on either side, and one commit has everything new.
// The manifest says which run verified what this one keeps, however many refreshes ago.
func TestRefreshCostsWhatChanged(t *testing.T) {
	t.Parallel()
	for _, c := range refreshes(t) {
		t.Run(c.name, func(t *testing.T) {
			w := licensed(t)
			first, before, head := w.manifest(t).Source.Commit, w.target(), w.Head(targetRepo, "main")
			w.Push(sourceRepo, "main", c.files)
			r, x := w.refresh(t)
			t.Logf("%+v", x)
			c.judge(t, w, x, before)
			if w.Commits(targetRepo, "main")[0].Parent != head {
				t.Error("main did not move by one commit")
			}
			c.provenance(t, w.manifest(t), r, metadata.Run{Version: "test", Commit: first})

			if r, x := w.refresh(t); !r.Verified.UpToDate || x.source+x.result+x.sent > 0 {
				t.Errorf("it is not up to date: %+v", x)
			}
			w.Push(sourceRepo, "main", map[string][]byte{names.Card: []byte("# Another typo")})
			if _, x := w.refresh(t); x.source+x.result+x.sent > 0 {
				t.Errorf("the next typo costs %+v", x)
			}
			for _, f := range w.manifest(t).Outputs {
				second := slices.Contains(c.outputs, f.Path)
				if f.Kind.Weights() && (f.Earlier == nil || (f.Earlier.Commit == first) == second) {
					t.Errorf("%s: verified by %+v", f.Path, f.Earlier)
				}
			}
			// and it can be proved at any time
			r, x = w.refresh(t, forced)
			if r.Verified.Weights != r.Sizes.Weights || r.Verified.Earlier > 0 || x.source+x.sent > 0 || x.result == 0 {
				t.Errorf("forced: %+v, %+v", r.Verified, x)
			}
			sameFiles(t, besides(w.target()), besides(fresh(t, w)))
		})
	}
}

// judge checks what a refresh has read and written.
func (c change) judge(t *testing.T, w *world, x traffic, before map[string]hubtest.File) {
	t.Helper()
	all, after := maps.Clone(before), w.target()
	maps.Copy(all, after)
	for name := range all {
		written, must := before[name] != after[name], slices.Contains(c.writes, name)
		if written != must && !slices.Contains(c.outputs, name) {
			t.Errorf("%s was written: %v", name, written)
		}
	}
	var source, beside int64
	for _, f := range c.shards {
		source += w.Files(sourceRepo, "main")[f].Size
	}
	for _, f := range c.beside {
		beside += w.Files(sourceRepo, "main")[f].Size
	}
	if len(c.shards) == 0 && x.source+x.result+x.sent > 0 || x.source < source || x.source > source+beside {
		t.Errorf("%+v, want %d bytes of the source, and at most %d more", x, source, beside)
	}
}

// provenance checks what the manifest and the report say of the weights.
func (c change) provenance(t *testing.T, m *metadata.Manifest, r *convert.Report, by metadata.Run) {
	t.Helper()
	var weights int64
	for _, f := range m.Outputs {
		made := slices.Contains(c.outputs, f.Path) || !f.Kind.Weights()
		if made != (f.Earlier == nil) || f.Earlier != nil && *f.Earlier != by || f.Kind.Weights() != (f.Digest != "") {
			t.Errorf("%s: verified by %+v", f.Path, f.Earlier)
		}
	}
	for _, u := range m.Units {
		if !slices.Contains(c.outputs, u.File) {
			weights += u.NWeights
		}
	}
	for _, f := range m.Source.Files {
		want := metadata.Earlier
		switch {
		case slices.Contains(c.shards, f.Path):
			want = metadata.Streamed
		case slices.Contains(c.beside, f.Path):
			want = metadata.Proof
		}
		if f.Integrity != want {
			t.Errorf("%s: %s, want %s", f.Path, f.Integrity, want)
		}
	}
	v := metadata.Verification{}
	if len(m.Verification) > 0 {
		v = m.Verification[0]
	}
	if r.Verified.Earlier != weights || r.Verified.Weights+weights != r.Sizes.Weights || v.NWeights != r.Verified.Weights || (weights == 0) != r.Verified.Now {
		t.Errorf("%d weights are taken over, the report says %+v, the manifest %+v", weights, r.Verified, v)
	}
}

// besides returns what a target holds except the files that name the commit.
func besides(files map[string]hubtest.File) map[string]hubtest.File {
	delete(files, names.Card)
	delete(files, names.Manifest)
	return files
}

// TestRefreshIsStoppedAnywhere checks that wherever a refresh ends, the next run makes the target
// equal to a new conversion, and reads no unchanged weights.
func TestRefreshIsStoppedAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range refreshes(t) {
		t.Run(c.name, func(t *testing.T) {
			w := licensed(t)
			w.Push(sourceRepo, "main", c.files)
			want := besides(fresh(t, w))
			w.refresh(t)
			last := len(w.Requests())
			for n := 1; n <= last; n += shared.Stride(9) {
				w, work := licensed(t), t.TempDir()
				head := w.Head(targetRepo, "main")
				w.Push(sourceRepo, "main", c.files)
				err := w.stopped(t, work, func(stop func()) {
					w.Inject(hubtest.Fault{Nth: n, Action: func(x *hubtest.Exchange) { stop(); x.Next(x.ResponseWriter) }})
				})
				if err != nil && n%2 == 0 {
					work = t.TempDir() // on another machine
				}
				_, x := w.refresh(t, func(o *convert.Options) { o.WorkDir = work })
				if len(c.shards) == 0 && x.source+x.result+x.sent > 0 {
					t.Errorf("stopped at %d of %d, the next run moves %+v", n, last, x)
				}
				sameFiles(t, besides(w.target()), want)
				if w.Commits(targetRepo, "main")[0].Parent != head {
					t.Error("main did not move by one commit")
				}
			}
		})
	}
}

// TestPartsOfTwoCommits checks that parts of two commits with equal weights fit together. If the
// weights differ, the part of the earlier commit is missing.
func TestPartsOfTwoCommits(t *testing.T) {
	t.Parallel()
	for _, c := range refreshes(t) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, small())
			w.Push(sourceRepo, "main", text("LICENSE", "apache", "generation_config.json", "{}"))
			w.mustConvert(t, part(1, 2))
			w.Push(sourceRepo, "main", c.files)
			w.mustConvert(t, part(2, 2))
			_, err := w.convert(t.Context(), t, t.TempDir(), finishing)
			if len(c.outputs) == 0 {
				shared.Must(t, err)
				sameFiles(t, besides(w.target()), besides(fresh(t, w)))
				return
			}
			if missing := (convert.PartsError)(nil); !errors.As(err, &missing) || !strings.HasPrefix(missing[0], "part 1 of 2") {
				t.Errorf("got %v", err)
			}
			w.mustConvert(t, part(1, 2))
			w.mustConvert(t, finishing)
			sameFiles(t, besides(w.target()), besides(fresh(t, w)))
		})
	}
}

// TestTakenOverIsNotVouchedFor checks that a run keeps what a consistent, forged manifest lists at
// the source's next commit, but claims nothing about it. With Force, or if anything doesn't fit, it
// proves what is there, and makes wrong outputs again.
func TestTakenOverIsNotVouchedFor(t *testing.T) {
	t.Parallel()
	const victim = "lm_head.safetensors"
	for name, tt := range map[string]struct {
		change func(t *testing.T, m *metadata.Manifest)
		taken  bool // the forged file
		again  bool // all weights are made again or proved
	}{
		"true in itself": {change: func(*testing.T, *metadata.Manifest) {}, taken: true},
		"another digest": {change: func(_ *testing.T, m *metadata.Manifest) { at(m, victim).Digest = shared.Sum([]byte("x")) }},
		"no digest":      {change: func(_ *testing.T, m *metadata.Manifest) { at(m, victim).Digest = "" }},
		"a file too many": {change: func(_ *testing.T, m *metadata.Manifest) {
			m.Outputs = append(m.Outputs, metadata.OutputFile{Path: "x", Kind: metadata.KindCopied, SHA256: shared.Sum(nil)})
		}, again: true},
		"another unit": {change: func(_ *testing.T, m *metadata.Manifest) {
			for i := range m.Units {
				if m.Units[i].File == victim {
					m.Units[i].Path = "x"
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := licensed(t)
			other := newWorld(t, nil)
			files := retrained().Files()
			other.AddRepo(sourceRepo, files)
			other.mustConvert(t)
			forged := []byte(content(t, other.Server, targetRepo, "main", victim))
			m := w.manifest(t)
			at(m, victim).Size, at(m, victim).SHA256 = int64(len(forged)), shared.Sum(forged)
			tt.change(t, m)
			b, err := m.Marshal()
			shared.Must(t, err)
			w.Push(targetRepo, "main", map[string][]byte{victim: forged, names.Manifest: b})
			w.Push(sourceRepo, "main", map[string][]byte{names.Card: []byte("# A typo")})
			want := fresh(t, w)

			r := w.mustConvert(t)
			taken := w.target()[victim].SHA256 == shared.Sum(forged)
			v := r.Verified
			if taken != tt.taken || v.Now != tt.again || (v.Earlier == 0) != tt.again || v.Weights+v.Earlier != r.Sizes.Weights {
				t.Errorf("taken over: %v, %+v", taken, v)
			}
			card := content(t, w.Server, targetRepo, "main", names.Card)
			if claims := !strings.Contains(card, "This update didn't decode them again"); claims != tt.again {
				t.Error("the card claims too much or too little")
			}
			r = w.mustConvert(t, forced)
			if r.Verified.Weights != r.Sizes.Weights || r.Verified.Earlier > 0 {
				t.Errorf("forced: %+v", r.Verified)
			}
			sameFiles(t, besides(w.target()), besides(want))
			for _, f := range w.manifest(t).Outputs {
				if f.Earlier != nil {
					t.Errorf("forced: %s is taken over", f.Path)
				}
			}
		})
	}
}

// at finds a file of a manifest.
func at(m *metadata.Manifest, path string) *metadata.OutputFile {
	return &m.Outputs[slices.IndexFunc(m.Outputs, func(f metadata.OutputFile) bool { return f.Path == path })]
}

// TestRefreshOfAFolder checks that a folder keeps its files in a refresh, even if it's published at
// the same time. Files that are published for the first time are proved. A local source is hashed.
func TestRefreshOfAFolder(t *testing.T) {
	t.Parallel()
	typo := text(names.Card, "# A typo", "LICENSE", "bsd")
	both := func(out string) func(*convert.Options) { return func(o *convert.Options) { o.OutDir = out } }
	taken := func(r *convert.Report, all bool) {
		t.Helper()
		if want := map[bool]int64{true: r.Sizes.Weights}[all]; r.Verified.Earlier != want || r.Verified.Weights+want != r.Sizes.Weights {
			t.Errorf("taken over: %+v", r.Verified)
		}
	}
	run := func(w *world, change func(*convert.Options)) *convert.Report {
		t.Helper()
		r, err := w.convert(t.Context(), t, t.TempDir(), change)
		shared.Must(t, err)
		return r
	}
	w, out := newWorld(t, small()), t.TempDir()
	run(w, inFolder(out))
	w.Push(sourceRepo, "main", typo)
	w.ResetLog()
	taken(run(w, inFolder(out)), true)
	taken(run(w, both(out)), false) // nothing was published yet
	w.Push(sourceRepo, "main", map[string][]byte{"LICENSE": []byte("mit")})
	taken(run(w, both(out)), true)
	if string(shared.Read(t, filepath.Join(out, "LICENSE"))) != "mit" {
		t.Error("the license is the old one")
	}
	sameFiles(t, besides(w.target()), besides(fresh(t, w)))

	dir, out := writeModel(t, small()), t.TempDir()
	local := func(change func(*convert.Options)) *convert.Report {
		t.Helper()
		r, err := convertLocal(t, dir, out, plan.Options{}, change)
		shared.Must(t, err)
		return r
	}
	local(nil)
	shared.Write(t, filepath.Join(dir, "LICENSE"), typo["LICENSE"])
	taken(local(nil), true)
	b := shared.Read(t, filepath.Join(dir, secondFile))
	b[len(b)-1] ^= 1
	shared.Write(t, filepath.Join(dir, secondFile), b)
	_, err := convertLocal(t, dir, out, plan.Options{}, nil)
	foreign(t, err, "lm_head.safetensors") // other weights are another result
	taken(local(forced), false)
}
