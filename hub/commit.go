package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
)

// CommitRequest is one commit to make.
type CommitRequest struct {
	Summary     string
	Description string
	Parent      string // commit that the branch must still be at; "" is its head now
	Ops         []Op
	CreatePR    bool // open a pull request with the change instead of moving the branch
}

// Commit is a commit that was made.
type Commit struct {
	OID            string
	URL            string
	PullRequestURL string
	PullRequestRef string // "refs/pr/7": the revision to commit further changes to
}

// slowAnswer is how long the hub may take over a commit or a completion; it
// allows itself about a minute.
const slowAnswer = 3 * time.Minute

// Commit applies the changes in one commit. When an answer leaves open whether
// the commit was made (500, 504, a lost connection), the branch is read: if it
// holds every change, that is success; otherwise the commit is repeated, which
// its parent makes safe. ErrConflict says that the branch moved and lacks our
// changes: read its head, look again at what is to do, and call again. With
// CreatePR it is the list of our pull requests that tells whether one of this
// title was opened; none is opened twice as long as titles differ. Ops that are Unchanged are left out, and a request without any
// other makes no commit and gives the head.
func (c *Client) Commit(ctx context.Context, repo, rev string, req CommitRequest) (Commit, error) {
	if err := checkOps(repo, req.Ops); err != nil {
		return Commit{}, err
	}
	rev = orDefault(rev, "main")
	ops := liveOps(req.Ops)
	if len(ops) == 0 || req.Parent == "" {
		head, err := c.Head(ctx, repo, rev)
		if err != nil || len(ops) == 0 {
			return Commit{OID: head}, err
		}
		req.Parent = head
	}
	p := &pendingCommit{c: c, repo: repo, rev: rev, title: req.Summary, parent: req.Parent, ops: ops}
	var err error
	if p.r, err = c.commitRequest(repo, rev, req, ops); err != nil {
		return Commit{}, err
	}
	try := p.try
	if req.CreatePR {
		try = p.tryPull
	}
	err = c.t.retry(ctx, p.r, try)
	return p.done, err
}

func checkOps(repo string, ops []Op) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	for _, o := range ops {
		if err := ValidPath(o.Path); err != nil {
			return err
		}
	}
	return nil
}

func liveOps(ops []Op) []Op {
	var live []Op
	for _, o := range ops {
		if o.kind != opNone {
			live = append(live, o)
		}
	}
	return live
}

func (c *Client) commitRequest(repo, rev string, req CommitRequest, ops []Op) (*request, error) {
	header := map[string]string{"summary": req.Summary, "description": req.Description, "parentCommit": req.Parent}
	body, err := ndjson(header, ops)
	if err != nil {
		return nil, fmt.Errorf("write commit: %w", err)
	}
	target := c.apiURL(repo, revPath("commit", rev))
	if req.CreatePR {
		target += "?create_pr=1"
	}
	return &request{op: "commit to " + repo, repo: repo, method: http.MethodPost, url: target, token: true,
		follow: followSame, slow: slowAnswer,
		header: http.Header{"Content-Type": {"application/x-ndjson"}},
		body:   func() io.Reader { return bytes.NewReader(body) }, size: int64(len(body))}, nil
}

// pendingCommit is a commit on its way.
type pendingCommit struct {
	c         *Client
	r         *request
	repo, rev string
	title     string
	parent    string
	ops       []Op
	inDoubt   bool // an earlier attempt may have landed, or land still
	done      Commit
}

// try makes one attempt and settles what its answer leaves open.
func (p *pendingCommit) try(ctx context.Context, _ *progress) error {
	if p.inDoubt {
		if err := p.settle(ctx, nil); !errors.Is(err, errNotLanded) {
			return err
		}
	}
	err := p.post(ctx)
	if err == nil || !unsettled(err) {
		return missingObject(err)
	}
	p.inDoubt = true
	return p.settle(ctx, err)
}

// errNotLanded says that the branch is where it was before the commit.
var errNotLanded = errors.New("commit is not there")

// settle reads the branch after cause. It gives nil when every change is
// there, ErrConflict when the branch moved without them, and otherwise cause,
// for the retry loop to judge (errNotLanded if there is none).
func (p *pendingCommit) settle(ctx context.Context, cause error) error {
	head, err := p.c.Head(ctx, p.repo, p.rev)
	if err != nil {
		return err
	}
	tree, err := p.c.Tree(ctx, p.repo, head)
	if err != nil {
		return err
	}
	if holdsAll(p.ops, tree) {
		p.done = Commit{OID: head}
		return nil
	}
	if head != p.parent {
		return p.conflict(cause, head)
	}
	if cause == nil {
		return errNotLanded
	}
	var e *Error
	if errors.As(cause, &e) && errors.Is(cause, ErrConflict) {
		busy := *e
		busy.Err = errBusy
		return &busy
	}
	return cause
}

func (p *pendingCommit) conflict(cause error, head string) error {
	var e *Error
	if errors.As(cause, &e) {
		moved := *e
		moved.Err = ErrConflict
		return &moved
	}
	return p.c.errorf(p.r.op, ErrConflict, "%s is at %s", p.rev, head)
}

func holdsAll(ops []Op, tree map[string]TreeEntry) bool {
	for _, o := range ops {
		if !o.holds(tree) {
			return false
		}
	}
	return true
}

// unsettled says whether a failed POST may have changed the branch, or says
// that something else did.
func unsettled(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Status == 0 {
		return !neverStarted(e) && temporaryNetwork(e.Err)
	}
	return e.Status >= 500 || e.Status == http.StatusRequestTimeout || errors.Is(err, ErrConflict)
}

func (p *pendingCommit) post(ctx context.Context) error {
	resp, err := p.c.t.exchange(ctx, p.r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		CommitOID      string `json:"commitOid"`
		CommitURL      string `json:"commitUrl"`
		PullRequestURL string `json:"pullRequestUrl"`
	}
	if err := p.c.decode(p.r, resp, &answer); err != nil {
		return err
	}
	p.done = Commit{OID: answer.CommitOID, URL: rewrite(p.c.t.endpoint, answer.CommitURL),
		PullRequestURL: rewrite(p.c.t.endpoint, answer.PullRequestURL)}
	p.done.PullRequestRef = pullRef(answer.PullRequestURL)
	return nil
}

var missingText = regexp.MustCompile(`(?i)lfs (pointer|object|file)[^.]*(not exist|not found|missing|unknown)|(unknown|missing) lfs`)

// missingObject names the refusal of a commit whose large file the hub lost:
// upload it again.
func missingObject(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest || !missingText.MatchString(e.Message) {
		return err
	}
	missing := *e
	missing.Err = ErrMissingObject
	return &missing
}
