package convert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// A maker makes one result, again and again: of a repo of the hub, or of a folder.
type maker struct {
	name   string
	source string
	opt    plan.Options
}

// A site takes results, and a user's files: a folder, or a branch of a repo.
type site struct {
	*world
	t            *testing.T
	folder       string
	repo, branch string
}

// files are what is there, but for a folder's lock and unfinished files.
func (s *site) files() map[string]string {
	there := map[string]string{}
	if s.folder != "" {
		there = folder(s.t, s.folder)
		maps.DeleteFunc(there, func(name, _ string) bool { return strings.HasPrefix(name, names.StateDir) })
		return there
	}
	for name := range s.Files(s.repo, s.branch) {
		there[name] = content(s.t, s.Server, s.repo, s.branch, name)
	}
	there[names.Attributes] = byHub.ReplaceAllString(there[names.Attributes], "")
	return there
}

// byHub matches the lines of a .gitattributes that the Hub adds for single files.
var byHub = regexp.MustCompile(`(?m)^[^*\n]+ filter=lfs .*\n`)

// put writes a file of the user's, or removes one.
func (s *site) put(name string, b []byte) {
	if s.folder == "" {
		s.Push(s.repo, s.branch, map[string][]byte{name: b})
		return
	}
	name = filepath.Join(s.folder, name)
	if b == nil {
		shared.Must(s.t, os.Remove(name))
		return
	}
	shared.Write(s.t, name, b)
}

// ownership is what a test knows of a site: who has put each file there. "" is more than one maker.
type ownership struct {
	*rand.Rand
	*site
	makers []*maker
	owner  map[string]string
	wrote  map[string][2]string   // the last maker of a path, and what it wrote
	blind  bool                   // what listed a maker's files may be gone
	part   func(*convert.Options) // of a result, for the next runs
	writes bool                   // the user, during the next run
	seen   map[string]int         // what the test has met
	story  []string
}

const user = "the user"

// TestOnlyAnUpdateDeletes checks that a run without --force changes and removes only what runs of
// the same result have written, whatever else a folder or a branch holds: results of other sources,
// other files, components or folders of one name, and files of the user with the very bytes of the
// source. With --force, it also replaces and removes what runs of other results have written, but
// removes nothing of the user's. It says what it will remove. A conflict names files of others
// alone; without these, a run ends well. A run that ends well has made its whole result, without a
// file of the former one. The runs are killed, make parts, and meet: two at once, or the user's
// commits.
func TestOnlyAnUpdateDeletes(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, seed := range shared.Seeds(t, 24, 1500) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) { // which closes its servers
			o := newOwnership(t, seed)
			o.seen = seen
			if o.IntN(2) == 0 {
				o.userWrites(o.makers[0])
			}
			o.run(false, -1, o.makers[0])
			for range 6 {
				o.move()
			}
			if t.Failed() {
				t.Log(strings.Join(o.story, "\n"))
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Log(seen)
	for _, what := range []string{"made", "refused", "made way for", "killed", "kept", "replaced", "removed", "forced", "written meanwhile"} {
		if seen[what] == 0 {
			t.Errorf("the test never met what is %s", what)
		}
	}
}

func newOwnership(t *testing.T, seed uint64) *ownership {
	rnd := rand.New(rand.NewPCG(seed, 33))
	w := newWorld(t, small())
	w.Push(sourceRepo, "main", text("LICENSE", "mit", "generation_config.json", "{}"))
	w.AddModel("org/other", seeded(2))
	pipe := map[string][]byte{"LICENSE": []byte("mit"), names.Chart: hubtest.OwnPicture[names.Chart], "model_index.json": []byte(
		`{"_class_name": "WanPipeline", "transformer": ["diffusers", "WanTransformer3DModel"], "transformer_2": ["diffusers", "WanTransformer3DModel"]}`)}
	single := map[string][]byte{names.Chart: hubtest.OwnPicture[names.Chart]}
	picture := plan.Options{Include: []string{names.Chart}}
	for i, dir := range []string{"transformer", "transformer_2"} {
		c := shared.NewCheckpoint(uint64(i))
		for b := range 2 {
			c.Block(fmt.Sprintf("blocks.%d.", b), "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn2.to_q", "attn2.to_k", "attn2.to_v",
				"attn2.to_out.0", "ffn.net.0.proj", "ffn.net.2")
		}
		pipe[dir+"/diffusion_pytorch_model.safetensors"] = c.File()
		pipe[dir+"/config.json"] = []byte(`{"_class_name": "WanTransformer3DModel", "num_layers": 2}`)
		single[[]string{"high", "low"}[i]+".safetensors"] = checkpoint(t, seeded(uint64(i)).Files())["all-in-one.safetensors"]
	}
	w.AddRepo("org/pipe", pipe)
	w.AddRepo("org/single", single)
	o := &ownership{Rand: rnd, site: &site{world: w, t: t}, owner: map[string]string{}, wrote: map[string][2]string{}}
	switch rnd.IntN(2) {
	case 0:
		o.folder = filepath.Join(t.TempDir(), "out")
		shared.Must(t, os.Mkdir(o.folder, 0o755))
	default:
		o.repo, o.branch = targetRepo, "main"
		w.AddRepo(targetRepo, nil)
		if rnd.IntN(3) == 0 {
			o.branch = "next"
			w.CreateBranch(targetRepo, "next", "main")
		}
	}
	for name := range o.files() {
		o.owner[name] = user
	}
	comfy := func(file string) plan.Options {
		return plan.Options{PatternDict: splitLayers, Layout: catalog.ComfyUI, WeightFile: file, Include: picture.Include}
	}
	all := []*maker{
		{name: "model", source: sourceRepo}, {name: "other", source: "org/other"},
		{name: "high", source: "org/single", opt: comfy("high.safetensors")}, {name: "low", source: "org/single", opt: comfy("low.safetensors")},
		{name: "first", source: "org/pipe", opt: plan.Options{Component: "transformer"}}, {name: "second", source: "org/pipe", opt: plan.Options{Component: "transformer_2"}},
		{name: "one folder", source: writeModel(t, seeded(3)), opt: picture}, {name: "another folder", source: writeModel(t, seeded(4)), opt: picture},
	}
	rnd.Shuffle(len(all)/2, func(i, j int) { // by pairs
		all[2*i], all[2*i+1], all[2*j], all[2*j+1] = all[2*j], all[2*j+1], all[2*i], all[2*i+1]
	})
	o.makers = all[:2+rnd.IntN(2)]
	return o
}

// move makes one random move.
func (o *ownership) move() {
	m := o.makers[max(0, o.IntN(len(o.makers)+1)-1)]
	switch n := o.IntN(13); {
	case n == 0:
		o.userWrites(m)
	case n == 1:
		if there := slices.Sorted(maps.Keys(o.owner)); len(there) > 0 && o.IntN(2) == 0 {
			o.userHas(there[o.IntN(len(there))], nil)
		}
	case n < 5:
		o.commit(m)
		o.run(false, -1, m)
	case n < 9:
		o.writes = n == 5
		o.run(false, -1, m)
	case n == 9:
		o.run(false, o.IntN(60), m)
	case n == 10:
		o.run(true, -1, m)
	case n == 11 && o.repo != "" && m.opt.Layout == "":
		for i := range 2 {
			o.part = part(1+i, 2)
			o.run(false, -1, m)
		}
		o.part = nil
		o.run(false, -1, m)
	default:
		o.run(false, -1, m, o.makers[o.IntN(len(o.makers))])
	}
}

func (o *ownership) tell(format string, args ...any) {
	o.story = append(o.story, fmt.Sprintf(format, args...))
}

// userWrites has the user write a file that somebody may want: something new, what the source of a
// maker has there, or what a maker has written.
func (o *ownership) userWrites(m *maker) {
	list := []string{"LICENSE", "tokenizer.json", "generation_config.json", "notes.md", names.Card}
	switch o.IntN(8) {
	case 0: // in the way
		list = []string{"config.json", "lm_head.safetensors", "model_layers_0.safetensors", "more.safetensors"}
	case 1: // or not
		list = []string{"model-q4.gguf", "pytorch_model.bin", "lora/adapter_model.safetensors", "sub/config.json", "data/täble 1.csv", ".hidden",
			".df11/notes.json", ".gitignore", "A.SAFETENSORS"}
	}
	name := list[o.IntN(len(list))]
	b := fmt.Appendf(nil, `{"theirs": %d}`, o.Uint64())
	switch last, source := o.wrote[name], o.sourceFile(m, name); {
	case o.IntN(3) > 0 && source != nil:
		b = source
	case o.IntN(2) == 0 && last[0] != "":
		b = []byte(last[1])
	}
	o.userHas(name, b)
}

func (o *ownership) sourceFile(m *maker, name string) []byte {
	if filepath.IsAbs(m.source) {
		b, _ := os.ReadFile(filepath.Join(m.source, name))
		return b
	}
	b, _ := o.ReadFile(m.source, "main", name)
	return b
}

// userHas puts a file there, or removes it. What a maker has written last there is its own again:
// no one could tell.
func (o *ownership) userHas(name string, b []byte) {
	before := o.files()
	if old, there := before[name]; there && b != nil && old == string(b) || !there && b == nil {
		return
	}
	o.put(name, b)
	o.blind = o.blind || names.IsJournal(name) || name == names.Manifest
	o.tell("the user writes %s: %.40s", name, b)
	if delete(o.owner, name); b == nil {
		return
	}
	o.owner[name] = user
	if last := o.wrote[name]; last[1] == string(b) && last[0] != "" {
		o.owner[name] = last[0]
	}
}

// commit changes or drops a file of a source, or trains the model again.
func (o *ownership) commit(m *maker) {
	list := []string{"LICENSE", "tokenizer.json", "generation_config.json"}
	name, b := list[o.IntN(len(list))], []byte(`{"top_k": 1}`)
	switch o.IntN(3) {
	case 0:
		if b = nil; o.sourceFile(m, name) == nil {
			name = list[0]
		}
	case 1:
		b = fmt.Appendf(nil, `{"top_k": %d}`, o.IntN(3))
	}
	o.tell("%s has another %s: %s", m.source, name, b)
	if filepath.IsAbs(m.source) {
		if name = filepath.Join(m.source, name); b == nil {
			_ = os.Remove(name)
		} else {
			shared.Write(o.t, name, b)
		}
		return
	}
	files := map[string][]byte{name: b}
	if m.source == sourceRepo && o.IntN(3) == 0 {
		o.tell("with other weights") // than any other source
		maps.Copy(files, hubtest.NewLlama(10+o.Uint64N(3), hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2 + o.IntN(2), ShardBytes: 30_000, Extra: hubtest.OwnPicture}).Files())
		for old := range o.Files(sourceRepo, "main") {
			if _, is := files[old]; !is && strings.HasSuffix(old, ".safetensors") {
				files[old] = nil
			}
		}
	}
	o.Push(m.source, "main", files)
}

// make runs a maker. out is another folder to make it in.
func (o *ownership) make(ctx context.Context, m *maker, out string, change ...func(*convert.Options)) error {
	where := func(opt *convert.Options) {
		if filepath.IsAbs(m.source) {
			opt.Model.Origin = &model.Origin{Repo: "org/tuned", Equal: 1}
		}
		if out != "" {
			opt.OutDir, opt.Push = out, nil
			return
		}
		push(opt).Repo, push(opt).Private, opt.CommitWait = o.repo, new(bool), 1
		if o.branch != "main" {
			push(opt).Revision = o.branch
		}
	}
	_, err := convertWith(ctx, o.t, o.client(o.t), m.source, m.opt, slices.Concat([]func(*convert.Options){where}, change)...)
	return err
}

// run lets makers run at once, by force or not; with kill, they are stopped at that request. It
// checks what they have done.
func (o *ownership) run(force bool, kill int, makers ...*maker) {
	o.ClearFaults()
	ctx, stop := context.WithCancelCause(o.t.Context())
	defer stop(nil)
	if kill >= 0 {
		o.Inject(hubtest.Fault{Nth: 1 + kill, Action: func(x *hubtest.Exchange) { stop(errStop); x.Next(x.ResponseWriter) }})
	}
	before, said, errs := o.files(), &strings.Builder{}, make([]error, len(makers))
	var mu sync.Mutex
	if o.writes && o.repo != "" {
		o.writes = false
		o.Inject(hubtest.Fault{Method: "POST", Nth: 1 + o.IntN(6), Action: func(x *hubtest.Exchange) {
			mu.Lock()
			defer mu.Unlock()
			o.userWrites(makers[0])
			o.seen["written meanwhile"]++
			for name, content := range o.files() {
				if _, there := before[name]; there || o.owner[name] == user {
					before[name] = content
				}
			}
			x.Next(x.ResponseWriter)
		}})
	}
	log := slog.New(logHook(func(r slog.Record) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(said, r.Message)
	}))
	var group sync.WaitGroup
	for i, m := range makers {
		group.Go(func() {
			errs[i] = o.make(ctx, m, o.folder, func(x *convert.Options) {
				if x.Force, x.Log = force, log; o.part != nil {
					o.part(x)
				}
			})
		})
	}
	group.Wait()
	o.ClearFaults()
	o.blind = o.blind || force
	after, may := o.files(), map[string]bool{"": true}
	defer o.makeWay(errs[0], makers)
	for i, m := range makers {
		may[m.name] = true
		o.tell("%s runs, force %v, kill %d: %v", m.name, force, kill, errs[i])
		o.ended(m, errs[i], force, len(makers) > 1)
	}
	for name, content := range before {
		now, there := after[name]
		switch {
		case there && now == content:
		case force && (there || o.owner[name] != user), may[o.owner[name]]:
		default:
			o.t.Errorf("%s of %s was %.60q and is %.60q", name, o.owner[name], content, now)
		}
		if there && now != content && !force && o.owner[name] != "" {
			o.seen["replaced"]++
		}
		if !there {
			o.seen["removed"]++
			if !strings.HasPrefix(name, names.JournalDir) && !strings.Contains(said.String(), name) && len(makers) == 1 && kill < 0 {
				o.t.Errorf("nothing said that %s would be removed: %s", name, said)
			}
			delete(o.owner, name)
			delete(o.wrote, name) // no manifest lists it any more
		}
	}
	o.written(before, after, makers, force)
	for i, m := range makers {
		if errs[i] == nil && len(makers) == 1 && o.part == nil {
			o.whole(m, after)
		}
	}
}

// makeWay has the user take away what a run has named, if all of that is his. Then the run ends
// well.
func (o *ownership) makeWay(err error, makers []*maker) {
	conflict := (*publish.ConflictError)(nil)
	if !errors.As(err, &conflict) || len(makers) > 1 || o.t.Failed() {
		return
	}
	named := slices.Concat(conflict.Files, conflict.Overwritten)
	if slices.ContainsFunc(named, func(name string) bool { return o.owner[name] != user }) {
		return
	}
	for _, name := range named {
		o.userHas(name, nil)
	}
	made := o.seen["made"]
	if o.run(false, -1, makers[0]); o.seen["made"] == made {
		o.t.Errorf("%s doesn't end well without what it has named", makers[0].name)
	}
	o.seen["made way for"]++
}

// ended checks how a run has ended: only a conflict that names files of others ends one, and none
// by force.
func (o *ownership) ended(m *maker, err error, force, two bool) {
	conflict, taken := (*publish.ConflictError)(nil), (*publish.TakenError)(nil)
	switch {
	case err == nil && force:
		o.seen["forced"]++
	case err == nil:
		o.seen["made"]++
	case errors.Is(err, errStop):
		o.seen["killed"]++
	case force:
		o.t.Errorf("by force: %v", err)
	case errors.As(err, &conflict):
		o.seen["refused"]++
		for _, name := range slices.Concat(conflict.Files, conflict.Overwritten) {
			if o.owner[name] == m.name && !two && !o.blind {
				o.t.Errorf("its own %s is in the way: %v", name, err)
			}
		}
	case errors.As(err, &taken) && two:
	case two && o.folder != "": // the lock
	default:
		o.t.Errorf("a run ends with %v", err)
	}
}

// written records who has written what is new.
func (o *ownership) written(before, after map[string]string, makers []*maker, force bool) {
	by := makers[0].name
	if len(makers) > 1 && makers[1] != makers[0] {
		by = "" // no one knows which
	}
	named := map[string]bool{} // by force, it counts as overwritten, whatever was there
	if m, err := metadata.ParseManifest([]byte(after[names.Manifest]), 0); force && err == nil {
		for _, f := range m.Outputs {
			named[f.Path] = !f.Kept
		}
	}
	for name, content := range after {
		if old, there := before[name]; !there || old != content || named[name] {
			o.owner[name], o.wrote[name] = by, [2]string{by, content}
		}
	}
}

// whole checks that the site holds the whole result of a maker, and nothing of its former one.
func (o *ownership) whole(m *maker, after map[string]string) {
	out := filepath.Join(o.t.TempDir(), "fresh")
	shared.Must(o.t, o.make(o.t.Context(), m, out))
	fresh := &site{t: o.t, folder: out}
	want := fresh.files()
	for name, content := range want {
		if name != names.Card && name != names.Manifest && after[name] != content {
			o.t.Errorf("%s of %s is %.60q, want %.60q", name, m.name, after[name], content)
		}
		if o.owner[name] == user {
			o.seen["kept"]++
		}
	}
	for name := range after {
		if _, is := want[name]; !is && o.owner[name] == m.name && !o.blind {
			o.t.Errorf("%s of the former %s is left", name, m.name)
		}
	}
}
