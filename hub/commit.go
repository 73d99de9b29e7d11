package hub

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/df11-convert/df11-convert/internal/names"
)

// An Op is one change of a commit.
type Op struct {
	Path   string
	Size   int64  // bytes of the file; 0 for a deletion
	SHA256 string // of a large file's content

	small, gone bool   // small: the commit itself has the content; gone: the file is deleted
	content     []byte // of a small file
}

// FileOp puts a small file into the commit itself. It borrows content until the commit is done.
func FileOp(path string, content []byte) Op {
	return Op{Path: path, Size: int64(len(content)), small: true, content: content}
}

// LFSOp adds a large file that the hub already stores.
func LFSOp(path, sha256 string, size int64) Op {
	return Op{Path: path, Size: size, SHA256: sha256}
}

// DeleteOp removes a file. The hub refuses the commit if the file doesn't exist.
func DeleteOp(path string) Op { return Op{Path: path, gone: true} }

// Deletes reports whether the Op removes a file.
func (o Op) Deletes() bool { return o.gone }

// row returns the Op as a line of the commit's body.
func (o Op) row() ndjsonRow {
	switch {
	case o.small:
		return ndjsonRow{"file",
			map[string]any{"path": o.Path, "content": base64.StdEncoding.EncodeToString(o.content),
				"encoding": "base64"}}
	case o.gone:
		return ndjsonRow{"deletedFile", map[string]any{"path": o.Path}}
	}
	return ndjsonRow{"lfsFile",
		map[string]any{"path": o.Path, "algo": "sha256", "oid": o.SHA256, "size": o.Size}}
}

// Holds reports whether a tree is as the Op would make it.
func (o Op) Holds(tree map[string]FileInfo) bool {
	entry, exists := tree[o.Path]
	switch {
	case o.small:
		hash := entry.Hash()
		return exists && isETag(hash) && hash == hashLike(hash, o.content)
	case o.gone:
		return !exists
	}
	return exists && entry.Path == o.Path && entry.Size == o.Size && entry.SHA256 == o.SHA256
}

// A CommitRequest is a commit to make.
type CommitRequest struct {
	Summary     string
	Description string
	Parent      string // the branch must still be at this commit
	Ops         []Op
	// Before is called before each try, also after a long wait. Its error ends the commit. It may
	// be nil.
	Before func(ctx context.Context) error
}

// A Commit is a commit that was made.
type Commit struct {
	OID string
	// OID wasn't confirmed: it's the branch's head, which holds our changes, and perhaps others
	Found bool
}

// slowAnswer is how long a hub may take to commit or complete an upload. The Hub limits that to
// about a minute (https://huggingface.co/docs/hub/storage-limits). A storage gets as long, because
// a slow network must first drain the system's buffers.
const slowAnswer = 3 * time.Minute

// Commit makes all changes in one commit. Without changes it makes none and returns the parent.
//
// If an answer leaves open whether the commit was made (500, 504, a lost connection), Commit reads
// the branch. If the branch holds every change, that's success. Otherwise Commit repeats the
// commit, which its parent makes safe. ErrConflict means that the branch moved and lacks our
// changes: read its head, check which changes are still needed, and call again.
func (c *Client) Commit(ctx context.Context, repo, rev string, req CommitRequest) (Commit, error) {
	for _, o := range req.Ops {
		if !o.gone && !names.IsSafe(o.Path) {
			return Commit{}, fmt.Errorf("commit %.200q: %w", o.Path, ErrUnsafePath)
		}
	}
	if len(req.Ops) == 0 {
		return Commit{OID: req.Parent, Found: true}, nil
	}
	body, err := req.ndjson()
	if err != nil {
		return Commit{}, fmt.Errorf("write commit: %w", err)
	}
	r := &request{op: "commit to " + repo, repo: repo, method: http.MethodPost,
		url: c.t.endpoint.api(repo, revPath("commit", rev)), token: true,
		lane: "commit", follow: followSame, slow: slowAnswer,
		header: http.Header{"Content-Type": {"application/x-ndjson"}},
		body:   func() io.Reader { return bytes.NewReader(body) }, size: int64(len(body))}
	p := &pendingCommit{CommitRequest: req, Client: c, r: r, repo: repo, rev: rev}
	err = c.t.retry(ctx, r, p.try)
	return p.done, err
}

type ndjsonRow struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// ndjson returns the body of the commit, one JSON object per line.
func (req CommitRequest) ndjson() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	header := map[string]string{"summary": req.Summary, "description": req.Description,
		"parentCommit": req.Parent}
	if err := enc.Encode(ndjsonRow{"header", header}); err != nil {
		return nil, err
	}
	for _, o := range req.Ops {
		if err := enc.Encode(o.row()); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}

// A pendingCommit is a commit on its way. Each of its Ops changes something.
type pendingCommit struct {
	CommitRequest
	*Client
	r         *request
	repo, rev string
	done      Commit
}

// try makes one attempt and finds out whether it took effect.
func (p *pendingCommit) try(ctx context.Context) error {
	if p.Before != nil {
		if err := p.Before(ctx); err != nil {
			return err
		}
	}
	err := p.post(ctx)
	if e := errorOf(err); unconfirmed(e) {
		return p.confirm(ctx, e)
	}
	return missingObject(err)
}

// confirm reads the branch after a failure. It returns nil if every change is there, ErrConflict if
// the branch moved without them, and otherwise the failure, for the retry loop.
func (p *pendingCommit) confirm(ctx context.Context, failure *Error) error {
	head, landed, err := p.landed(ctx)
	switch {
	case err != nil:
		return err
	case landed:
		p.done = Commit{OID: head, Found: true}
		return nil
	case head != p.Parent:
		return failure.under(ErrConflict)
	case errors.Is(failure, ErrConflict):
		// the Hub's 409 while another commit is on its way, whose head isn't there yet:
		// https://github.com/evaleval/every_eval_ever/pull/263
		return failure.under(errBusy)
	}
	return failure
}

// landed returns the head of the branch, and whether it holds every change.
func (p *pendingCommit) landed(ctx context.Context) (head string, all bool, err error) {
	if head, err = p.Head(ctx, p.repo, p.rev); err != nil {
		return "", false, err
	}
	tree, err := p.Tree(ctx, p.repo, head)
	if err != nil {
		return "", false, err
	}
	for _, o := range p.Ops {
		if !o.Holds(tree) {
			return head, false, nil
		}
	}
	return head, true, nil
}

// unconfirmed reports whether a failed POST may have changed the branch, or someone else did. The
// Hub has answered 500 after a success: https://github.com/huggingface/datasets/pull/7708.
func unconfirmed(e *Error) bool {
	// something in between may have replaced the hub's answer
	if errors.Is(e, ErrNotHub) {
		return true
	}
	if e.Status == 0 { // no answer; without a connection, the request wasn't even sent
		return !neverBegun(e.Err) && temporary(e.Err)
	}
	return e.Status >= 500 || e.Status == http.StatusRequestTimeout || errors.Is(e,
		ErrConflict)
}

func (p *pendingCommit) post(ctx context.Context) error {
	var answer struct {
		CommitOID string `json:"commitOid"`
	}
	if _, err := p.t.callOnce(ctx, p.r, &answer); err != nil {
		return err
	}
	if !names.IsCommit(answer.CommitOID) {
		return p.t.errorf(p.r.op, ErrNotHub, "the answer names no commit")
	}
	p.done = Commit{OID: answer.CommitOID}
	return nil
}

var missingText = regexp.MustCompile(
	`(?i)lfs (pointer|object|file)[^.]*(not exist|not found|missing|unknown)|(unknown|missing) lfs`)

// missingObject recognizes the refusal of a commit because the hub lost a large file, as after a
// repo was deleted and created again: https://github.com/huggingface/huggingface_hub/issues/3829.
// Upload it again.
func missingObject(err error) error {
	if e := errorOf(err); e.Status == http.StatusBadRequest &&
		missingText.MatchString(e.Message) {
		return e.under(ErrMissingObject)
	}
	return err
}
