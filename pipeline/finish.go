package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Names of the files that are ours in every result.
const (
	manifestName = metadata.ManifestName
	cardName     = "README.md"
)

// small is one of the files beside the weights. Either data or the store holds its bytes, until it is uploaded.
type small struct {
	path   string
	kind   metadata.Kind
	size   int64
	sha256 string
	data   []byte  // nil: a file of the store
	remote bool    // the target's store has it already, copied from the source's
	op     *hub.Op // of the last commit; nil while it is not uploaded
}

func newSmall(path string, kind metadata.Kind, data []byte) small {
	sum := sha256.Sum256(data)
	return small{path: path, kind: kind, size: int64(len(data)), sha256: hex.EncodeToString(sum[:]), data: data}
}

// finish proves what is still unchecked and writes everything beside the weights, config.json last.
func (r *run) finish(ctx context.Context) (*Report, error) {
	r.freeBuffers()
	sources, err := r.sourceFiles()
	if err != nil {
		return nil, err
	}
	files, err := r.copyFiles(ctx)
	if err != nil {
		return nil, err
	}
	if index := r.remainderIndex(); index != nil {
		files = append(files, newSmall(r.Plan.RemainderIndex, metadata.KindIndex, index))
	}
	config, err := r.config()
	if err == nil {
		err = lintConfig(config, r.Plan)
	}
	if err != nil {
		return nil, err
	}
	report := r.report()
	m := r.manifest(sources)
	card, err := r.card(m, report)
	if err != nil {
		return nil, err
	}
	files = append(files, newSmall(cardName, metadata.KindCard, card))
	if r.hasPicture() {
		picture, err := r.picture(report)
		if err != nil {
			return nil, err
		}
		files = append(files, newSmall(pictureName, metadata.KindImage, picture))
	}
	if config != nil {
		files = append(files, newSmall(r.configPath(), metadata.KindConfig, config))
	}
	for _, f := range files {
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: f.path, Kind: f.kind, Size: f.size, SHA256: f.sha256})
	}
	manifest, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	files = slices.Insert(files, len(files)-min(1, len(config)), newSmall(manifestName, "", manifest))
	return report, r.write(ctx, files, report)
}

// write puts the small files in place, the last one last, and publishes them in one commit.
func (r *run) write(ctx context.Context, files []small, report *Report) error {
	if r.store.keep {
		for _, f := range files {
			if f.data != nil {
				if err := r.writeSmall(f); err != nil {
					return err
				}
			}
		}
		report.Folder = r.OutDir
	}
	if r.pub == nil {
		return nil
	}
	ops, err := r.uploadSmall(ctx, files)
	if err != nil {
		return err
	}
	report.Repo, report.URL = r.Push.Repo, ""
	summary := fmt.Sprintf("Add %s as DF11", r.Model.ID)
	description := fmt.Sprintf("Made by df11-convert %s from %s at %s; every weight was decoded again and compared.", r.Version, r.Model.ID, orUnknown(r.Model.Commit))
	if err := r.pub.finish(ctx, summary, description, ops, r.ledger.all(), r.belongs(files)); err != nil {
		return err
	}
	report.URL = r.pub.url(r.Push.Hub.Endpoint())
	return nil
}

func orUnknown(commit string) string {
	if commit == "" {
		return "an unpinned revision"
	}
	return commit
}

func (r *run) writeSmall(f small) error {
	w, err := r.store.create(f.path, f.size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if _, err := w.Write(f.data); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return w.Commit(f.size)
}

// uploadSmall uploads what is large and still here, and gives the operations of the last commit, config.json at the end.
func (r *run) uploadSmall(ctx context.Context, files []small) ([]hub.Op, error) {
	var ops []hub.Op
	for _, f := range files {
		if f.op == nil {
			op, err := r.uploadOne(ctx, f)
			if err != nil {
				return nil, err
			}
			f.op = &op
		}
		ops = append(ops, *f.op)
	}
	return ops, nil
}

func (r *run) uploadOne(ctx context.Context, f small) (hub.Op, error) {
	op, err := r.uploadBytes(ctx, f)
	if err != nil {
		return op, fmt.Errorf("upload %s: %w", f.path, err)
	}
	return op, nil
}

func (r *run) uploadBytes(ctx context.Context, f small) (hub.Op, error) {
	if f.remote {
		if r.pub.result[f.path].SHA256 == f.sha256 {
			return hub.Op{}, nil
		}
		return hub.LFSOp(f.path, f.sha256, f.size), nil
	}
	blob := hub.Blob{Path: f.path, Size: f.size, SHA256: f.sha256, PullRequest: r.pub.opensPR()}
	if f.data != nil {
		blob.Reader = memory(f.data)
		return r.Push.Hub.Upload(ctx, r.Push.Repo, r.pub.main, blob)
	}
	file, err := openSection(r.store.path(f.path), 0, f.size)
	if err != nil {
		return hub.Op{}, err
	}
	defer file.Close()
	blob.Reader = file.(sectionFile).Reader.(io.ReaderAt)
	return r.Push.Hub.Upload(ctx, r.Push.Repo, r.pub.main, blob)
}

// belongs tells which files of the target stay: ours, and the repo's own settings.
func (r *run) belongs(files []small) func(string) bool {
	ours := map[string]bool{".gitattributes": true, ".gitignore": true}
	for _, f := range files {
		ours[f.path] = true
	}
	for _, t := range r.tasks {
		ours[t.path] = true
	}
	return func(p string) bool { return ours[p] || r.Force && isWeightFile(p) && !r.pub.owned[p] }
}

// sourceFiles says for the manifest what is known of each weight file.
func (r *run) sourceFiles() ([]metadata.SourceFile, error) {
	var out []metadata.SourceFile
	for i, w := range r.Model.Plan.Weights {
		c := r.checkpointOf(r.files[i])
		s := metadata.SourceFile{
			Path: w.Path, Size: w.Size, SHA256: c.SHA256, Integrity: metadata.Integrity(c.Integrity), Header: string(w.Header.Raw),
		}
		if c.Integrity == "" {
			return nil, fmt.Errorf("source file %s: its hash was never checked", w.Path)
		}
		out = append(out, s)
	}
	return out, nil
}

// remainderIndex is the index of a remainder in several files, nil for one file.
func (r *run) remainderIndex() []byte {
	if r.Plan.RemainderIndex == "" {
		return nil
	}
	var files []metadata.IndexFile
	var total int64
	for _, f := range r.Plan.RemainderFiles {
		x := metadata.IndexFile{Path: path.Base(f.Path)}
		for _, t := range f.Plain {
			x.Tensors = append(x.Tensors, t.Name)
			total += t.Length
		}
		files = append(files, x)
	}
	return metadata.RemainderIndex(files, total)
}

// configPath is where the result's config.json lies; "" if the layout has none.
func (o *Options) configPath() string {
	switch o.Plan.Config.Mode {
	case plan.ConfigInsert:
		return o.Plan.Config.Source
	case plan.ConfigNew:
		return path.Join(path.Dir(o.Plan.OutputFiles[0].Path), "config.json")
	}
	return ""
}

func (r *run) config() ([]byte, error) {
	switch r.Plan.Config.Mode {
	case plan.ConfigInsert:
		return metadata.InsertConfig(r.Model.Plan.Config, r.Plan.PatternDict)
	case plan.ConfigNew:
		if r.Plan.Layout == plan.Diffusers || r.Plan.Layout == plan.DiffusersSingle {
			return metadata.NewPipelineConfig(r.Plan.PatternDict), nil
		}
		return metadata.NewConfig(r.Plan.PatternDict), nil
	}
	return nil, nil
}

// memory is bytes as an io.ReaderAt.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
