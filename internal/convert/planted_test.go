package convert_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// planted is what someone with write access left in a target so that a run takes it for the work of
// an earlier one.
type planted struct {
	files map[string][]byte // outputs by path
	// of the plan, with the true sha256 of these files, and that of the source files as if they
	// were checked
	journal []byte
}

// plant makes the leftovers of a conversion of m by a plan of known, as a forgery has changed them.
func plant(t *testing.T, p *plan.Plan, known *model.Model, f forgery) planted {
	t.Helper()
	dir := localResult(t, f.of())
	manifest, err := metadata.ParseManifest(shared.Read(t, filepath.Join(dir, names.Manifest)), 0)
	shared.Must(t, err)
	x := planted{files: map[string][]byte{}}
	outputs := ledger.OfManifest(manifest).Done(manifest.Plan.Digest, nil)
	for _, o := range outputs {
		x.files[o.Path] = shared.Read(t, filepath.Join(dir, o.Path))
	}
	if f.files != nil {
		f.files(t, x.files)
	}
	for i, o := range outputs {
		outputs[i].Size, outputs[i].SHA256 = int64(len(x.files[o.Path])), shared.Sum(x.files[o.Path])
	}
	if f.lie != nil {
		f.lie(&outputs[0])
	}
	l := ledger.New(p.Digest(), false)
	from := sourceRepo
	if known.Local {
		from = ""
	}
	l.Claim(plan.IdentityOf(p, from), known.Commit, nil)
	for _, o := range outputs {
		shared.Must(t, l.Add(o))
	}
	x.journal = l.ForRepo(nil, l.Outputs())
	for i, w := range known.Listing.Weights {
		x.journal = fmt.Appendf(x.journal, `{"file":{"file":%q,"integrity":"streamed","sha256":%q}}`+"\n", w.Path, known.SHA256[i])
	}
	return x
}

// in puts the leftovers into a folder.
func (x planted) in(t *testing.T, dir, below string) {
	t.Helper()
	shared.WriteAll(t, filepath.Join(dir, below), x.files)
	shared.Write(t, filepath.Join(dir, journalFile), x.journal)
}

// withTensor is a safetensors file with one tensor more.
func withTensor(t *testing.T, file []byte, name string) []byte {
	t.Helper()
	more := shared.Tensor{Name: name, DType: "U8", Shape: []int64{8}, Data: make([]byte, 8)}
	return shared.Safetensors(append(tensors(t, file), more))
}

// forgery is what can be planted: changed files of a model, a journal with their hashes, and a lie
// about the first output.
type forgery struct {
	name  string
	of    func() *hubtest.Model
	files func(t *testing.T, files map[string][]byte)
	lie   func(o *ledger.Output)
}

// unlisted are the forgeries after which no journal says whose a file is.
var unlisted = []string{"no sha256", "another output"}

var forgeries = []forgery{
	{name: "weights of another model", of: retrained},
	{name: "a bit of a norm", of: small, files: func(t *testing.T, files map[string][]byte) {
		tensor(t, files["model_layers_1.safetensors"], "model.layers.1.input_layernorm.weight")[0] ^= 1
	}},
	{name: "a tensor more", of: small, files: func(t *testing.T, files map[string][]byte) {
		files["remainder.safetensors"] = withTensor(t, files["remainder.safetensors"], "model.layers.1.self_attn.q_proj.weight")
	}},
	{name: "a tensor twice", of: small, files: func(t *testing.T, files map[string][]byte) {
		files["remainder.safetensors"] = withTensor(t, files["remainder.safetensors"], "model.layers.1.input_layernorm.weight")
	}},
	{name: "another format", of: small, files: func(_ *testing.T, files map[string][]byte) {
		files["remainder.safetensors"] = bytes.Replace(files["remainder.safetensors"], []byte(`"pt"`), []byte(`"tf"`), 1)
	}},
	{name: "no header", of: small, files: func(_ *testing.T, files map[string][]byte) { files["remainder.safetensors"] = []byte("nothing") }},
	{name: "another output", of: small, files: func(_ *testing.T, files map[string][]byte) { files["stray"] = []byte("s") }, lie: func(o *ledger.Output) {
		o.Path, o.Size, o.SHA256 = "stray", 1, shared.Sum([]byte("s"))
	}},
	{name: "another status", of: small, lie: func(o *ledger.Output) { o.Units[0].Status, o.Units[0].Reason = metadata.BF16, "exponent_range" }},
	{name: "unknown status", of: small, lie: func(o *ledger.Output) { o.Units[0].Status = "x" }},
	{name: "no units", of: small, lie: func(o *ledger.Output) { o.Units = nil }},
	{name: "one unit more", of: small, lie: func(o *ledger.Output) { o.Units = append(o.Units, o.Units[0]) }},
	{name: "another unit", of: small, lie: func(o *ledger.Output) { o.Units[0].Path = "x" }},
	{name: "another number", of: small, lie: func(o *ledger.Output) { o.Units[0].NWeights++ }},
	// what decoding doesn't read, or what decodes to the same weights
	{name: "an unused length", of: small, files: func(t *testing.T, files map[string][]byte) {
		luts := tensor(t, files["lm_head.safetensors"], "lm_head.luts")
		luts[len(luts)-256+bytes.LastIndexByte(luts[len(luts)-256:len(luts)-16], 0)] = 5
	}},
	{name: "bits after the last code", of: small, files: func(t *testing.T, files map[string][]byte) {
		coded := tensor(t, files["lm_head.safetensors"], "lm_head.encoded_exponent")
		coded[len(coded)-1] ^= 1
	}},
	{name: "another code", of: small, files: func(t *testing.T, files map[string][]byte) { swapCodes(t, files["lm_head.safetensors"], "lm_head") }},
	{name: "kept without a reason", of: small, files: func(t *testing.T, files map[string][]byte) {
		files["lm_head.safetensors"] = keptHead(t, files["lm_head.safetensors"])
	}, lie: func(o *ledger.Output) {
		o.Units = []metadata.Unit{{Path: "lm_head", Status: metadata.BF16, Reason: "<img src=x>", NWeights: o.Units[0].NWeights}}
	}},
	{name: "another size of codes", of: small, lie: func(o *ledger.Output) { o.Units[0].CodedBits = 1 }},
	{name: "other exponents", of: small, lie: func(o *ledger.Output) {
		o.Units[0].Exponents = &metadata.Exponents{First: 7, Counts: []uint64{1 << 40}}
	}},
	{name: "a broken tie", of: small, lie: func(o *ledger.Output) { o.Units[0].TieBroken = true }},
	// a file that isn't there as it should be has none
	{name: "no sha256", of: small, lie: func(o *ledger.Output) { o.Size, o.SHA256 = o.Size+1, "" }},
}

// swapCodes gives two exponents of a unit each other's codes, which are equally long, so that it
// decodes to the same weights.
func swapCodes(t *testing.T, file []byte, unit string) {
	t.Helper()
	luts, coded := tensor(t, file, unit+".luts"), tensor(t, file, unit+".encoded_exponent")
	tables, lengths := luts[:len(luts)-256], luts[len(luts)-256:]
	slot := func(symbol int) int { return bytes.IndexByte(tables[:256], byte(symbol)) }
	a, b := 0, 0
	for ; a < 240; a++ {
		short := lengths[a] > 0 && lengths[a] <= 8
		if b = a + 1 + bytes.IndexByte(lengths[a+1:240], lengths[a]); short && b > a && slot(a) >= 0 && slot(b) >= 0 {
			break
		}
	}
	code := map[byte]int{byte(a): slot(b), byte(b): slot(a)} // left-aligned
	if a == 240 {
		t.Fatal("no two short codes are equally long")
	}
	bit := func(at int) *byte { return &coded[at/8] }
	byteAt := func(at int) (v byte) {
		for i := range 8 {
			if v <<= 1; at+i < 8*len(coded) {
				v |= *bit(at + i) >> (7 - (at+i)%8) & 1
			}
		}
		return v
	}
	for at, n := 0, len(tensor(t, file, unit+".sign_mantissa")); n > 0; n-- {
		symbol, level := tables[byteAt(at)], 1
		for ; symbol >= 240; level++ {
			symbol = tables[256*(256-int(symbol))+int(byteAt(at+8*level))]
		}
		length := int(lengths[symbol])
		if to, swapped := code[symbol]; swapped {
			for i := range length {
				mask := byte(1) << (7 - (at+i)%8)
				if *bit(at + i) &^= mask; to>>(7-i)&1 > 0 {
					*bit(at + i) |= mask
				}
			}
		}
		at += length
	}
	for i, v := range tables {
		switch v {
		case byte(a):
			tables[i] = byte(b)
		case byte(b):
			tables[i] = byte(a)
		}
	}
}

// keptHead is the file of small's head if DF11 couldn't hold it.
func keptHead(t *testing.T, file []byte) []byte {
	t.Helper()
	stored, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	shared.Must(t, err)
	for _, g := range small().Weights {
		h, err := safetensors.ReadHeader(g.Body, g.Size)
		shared.Must(t, err)
		x, ok := h.Lookup("lm_head.weight")
		if !ok {
			continue
		}
		kept, err := safetensors.NewHeader(stored.Metadata, []safetensors.Entry{{Name: x.Name, DType: x.DType, Shape: x.Shape}})
		shared.Must(t, err)
		weights := make([]byte, x.NBytes())
		_, err = g.Body.ReadAt(weights, h.DataStart()+x.Begin)
		shared.Must(t, err)
		return append(kept.Bytes(), weights...)
	}
	t.Fatal("no head")
	return nil
}

// TestNoJournalIsAWitness checks that whatever a journal in a target, output folder, or work folder
// says, the run itself proves the outputs that it calls verified, or makes them again. A forger who
// can write there gets nothing published, and nothing called verified.
func TestNoJournalIsAWitness(t *testing.T) {
	t.Parallel()
	want, dir := reference(t, small()), localResult(t, small())
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			proved := func(r *convert.Report, err error) {
				t.Helper()
				shared.Must(t, err)
				if r.Verified.Weights != r.Sizes.Weights || r.Verified.UpToDate {
					t.Errorf("%d of %d weights are said to be verified, up to date: %t", r.Verified.Weights, r.Sizes.Weights, r.Verified.UpToDate)
				}
			}
			w := newWorld(t, small())
			_, known, p, err := openModel(t.Context(), w.client(t), sourceRepo, plan.Options{})
			shared.Must(t, err)
			x, force := plant(t, p, known, f), func(o *convert.Options) { o.Force = slices.Contains(unlisted, f.name) }

			repo := maps.Clone(x.files)
			repo[".df11/part-1-of-1.json"] = x.journal
			w.AddRepo(targetRepo, repo)
			proved(w.convert(t.Context(), t, t.TempDir(), force))
			sameFiles(t, w.target(), want)
			checkPublished(t, w)

			w, work := newWorld(t, small()), t.TempDir()
			x.in(t, work, ".df11-convert/files")
			proved(w.convert(t.Context(), t, work, force))
			sameFiles(t, w.target(), want)

			w, work = newWorld(t, small()), t.TempDir()
			w.AddRepo(targetRepo, repo) // and what would be right in the work folder
			plant(t, p, known, forgery{of: small}).in(t, work, ".df11-convert/files")
			proved(w.convert(t.Context(), t, work, force))
			sameFiles(t, w.target(), want)

			out := t.TempDir()
			x.in(t, out, "")
			proved(w.convert(t.Context(), t, t.TempDir(), inFolder(out), force))
			sameFolder(t, out, dir)

			source, out := writeModel(t, small()), t.TempDir()
			_, known, p = openLocal(t, source, plan.Options{})
			for i, s := range known.Listing.Weights {
				known.SHA256[i] = shared.Sum(shared.Read(t, filepath.Join(source, s.Path)))
			}
			plant(t, p, known, f).in(t, out, "")
			proved(convertLocal(t, source, out, plan.Options{}, force))
			sameFolder(t, out, dir)
		})
	}
}

// TestFailedRebuildIsRepeated checks that a source file that outputs of earlier runs didn't give
// back is rebuilt from the new ones, too, although it was hashed while they were made. No one says
// that the source is wrong.
func TestFailedRebuildIsRepeated(t *testing.T) {
	t.Parallel()
	w, work := newWorld(t, small()), t.TempDir()
	_, known, p, err := openModel(t.Context(), w.client(t), sourceRepo, plan.Options{})
	shared.Must(t, err)
	plant(t, p, known, forgeries[1]).in(t, work, ".df11-convert/files")
	var said []string
	var mu sync.Mutex
	_, err = w.convert(t.Context(), t, work, func(o *convert.Options) {
		o.Log = slog.New(logHook(func(r slog.Record) {
			mu.Lock()
			defer mu.Unlock()
			line := r.Message
			r.Attrs(func(a slog.Attr) bool {
				if a.Key == "file" || a.Key == "of" {
					line += " " + a.Value.String()
				}
				return true
			})
			said = append(said, line)
		}))
	})
	shared.Must(t, err)
	const again = "the outputs don't give back a source file: making them again "
	failed := slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, again) })
	if failed < 0 || !slices.Contains(said[failed:], "source file rebuilt "+strings.TrimPrefix(said[failed], again)) {
		t.Errorf("%q", said)
	}
	for _, line := range said {
		if strings.Contains(line, "source file seems wrong") {
			t.Errorf("%q", line)
		}
	}
	sameFiles(t, w.target(), reference(t, small()))
}

// TestNoManifestIsAWitness checks that a run changes and claims nothing about a target that is
// finished according to its manifest. Before it changes anything there, it proves everything.
func TestNoManifestIsAWitness(t *testing.T) {
	t.Parallel()
	want := reference(t, small())
	w, out := newWorld(t, small()), t.TempDir()
	_, err := w.convert(t.Context(), t, "", inFolder(out))
	shared.Must(t, err)
	_, known, p, err := openModel(t.Context(), w.client(t), sourceRepo, plan.Options{})
	shared.Must(t, err)
	files, forged := shared.ReadAll(t, out), plant(t, p, known, forgeries[0])
	manifest, err := metadata.ParseManifest(files[names.Manifest], 0)
	shared.Must(t, err)
	for name, b := range forged.files {
		at(manifest, name).Size, at(manifest, name).SHA256 = int64(len(b)), shared.Sum(b)
		files[name] = b
	}
	files[names.Manifest], err = manifest.Marshal()
	shared.Must(t, err)
	head := w.AddRepo(targetRepo, files)
	shared.WriteAll(t, out, files)
	before := folder(t, out)
	both := func(o *convert.Options) { o.OutDir = out }
	r, err := w.convert(t.Context(), t, t.TempDir(), both)
	if err != nil || !r.Verified.UpToDate || r.Verified.Weights != 0 || r.Verified.By != nil || r.Made.Now != 0 || r.Target.Commit != head || r.Target.ManifestSHA256 != shared.Sum(files[names.Manifest]) {
		t.Fatalf("%+v, %v", r, err)
	}
	if w.Head(targetRepo, "main") != head || !maps.Equal(folder(t, out), before) {
		t.Error("a finished target was changed")
	}
	remove(t, filepath.Join(out, "config.json"))
	if r, err = w.convert(t.Context(), t, t.TempDir(), both); err != nil || r.Verified.UpToDate || r.Verified.Weights != r.Sizes.Weights {
		t.Fatalf("%+v, %v", r, err)
	}
	sameFiles(t, w.target(), want)
	sameFolder(t, out, localResult(t, small()))
}
