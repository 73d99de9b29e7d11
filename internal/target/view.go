package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/df11-convert/df11-convert/hub"
)

// maxJournalBytes bounds a journal or a manifest that is read whole.
const maxJournalBytes = 256 << 20

// A view is a repo at one commit.
type view struct {
	push   Push
	commit string
	tree   map[string]hub.FileInfo
}

func (p Push) view(ctx context.Context, commit string) (*view, error) {
	tree, err := p.Hub.Tree(ctx, p.Repo, commit)
	if err != nil {
		return nil, err
	}
	return &view{p, commit, tree}, nil
}

// String is the repo's id.
func (v *view) String() string { return v.push.Repo }

// list names all files. The word for a large one is its sha256.
func (v *view) list() (map[string]string, error) {
	files := map[string]string{}
	for name, e := range v.tree {
		files[name] = cmp.Or(e.SHA256, e.BlobID)
	}
	return files, nil
}

func (v *view) read(ctx context.Context, name string) ([]byte, error) {
	e, ok := v.tree[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	f := hub.FileInfo{Path: name, Size: e.Size, SHA256: e.SHA256, BlobID: e.BlobID}
	return v.push.Hub.ReadFile(ctx, f.Ref(v.push.Repo, v.commit), maxJournalBytes)
}

// seen is the head of a branch that the run has looked at, or has committed itself.
type seen struct {
	head string
	*holdings
}

// look makes sure that a branch is this conversion's, unless it is still at the head that is known to be. made is what the run
// has put there, or will, by path.
func (r *Repo) look(ctx context.Context, branch, head string, made map[string]string) error {
	r.at.mu.Lock()
	last := r.at.seen[branch]
	r.at.mu.Unlock()
	if last.head == head {
		return nil
	}
	v, err := r.view(ctx, head)
	if err != nil {
		return err
	}
	h, err := r.owner.look(ctx, v, last.holdings, made)
	if err != nil {
		return err
	}
	r.at.mu.Lock()
	r.at.seen[branch] = seen{head, h}
	r.at.mu.Unlock()
	return nil
}

// taken tells why the branch of a refresh is gone, if that is because another run was quicker: whoever has finished main
// removes the branches that main has gone past.
func (r *Repo) taken(ctx context.Context, err error) error {
	if r.at.work == r.at.main || !errors.Is(err, hub.ErrRevisionNotFound) {
		return err
	}
	head, headErr := r.Hub.Head(ctx, r.Repo, r.at.main)
	if headErr != nil {
		return err
	}
	return cmp.Or(r.look(ctx, r.at.main, head, nil), err)
}
