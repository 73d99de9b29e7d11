package hubtest

// Ways are the variants of the Hub's protocol that a server speaks. The zero value is the Hub's
// own.
type Ways struct {
	LongCommits bool // commit ids have 64 digits, as where repos are not in git
	AnswersHead bool // HEAD of a large file is answered; only a GET is sent on to the storage
	NoHashes    bool // preupload doesn't say what the branch holds
	NoTracking  bool // a commit of large files adds no line to .gitattributes
	NoSizes     bool // info has no sizes
	NoSlashes   bool // paths are decoded before they are routed, so that no name can have a slash
	Details     bool // errors stand in detail, as FastAPI writes them, and a full storage is 413
	Stale500    bool // a commit with another parent than the branch's head is 500
	EmptySHA    bool // info of a revision that is not there names no commit
	// a file of main is always listed with the size that it had first
	OldSizes bool
	// One row describes a path on all branches. It has the sha256 that any branch has committed last,
	// and lists show it for every commit, with the size of what that commit holds. A commit that brings
	// what the row says changes nothing. So a branch can keep old bytes under a new sha256, which only
	// the size betrays. KohakuHub does so, in process_lfs_file and _make_tree_item:
	// https://github.com/KohakuBlueleaf/KohakuHub/blob/2facb54/src/kohakuhub/api/commit/routers/operations.py#L220
	// https://github.com/KohakuBlueleaf/KohakuHub/blob/2facb54/src/kohakuhub/api/repo/routers/tree.py#L229
	OneRow bool
	// links for uploads are the hub's own, with a token, and lead on to the storage, as hfd's to S3:
	// https://github.com/matrixhub-ai/hfd/blob/c4fdaa7/pkg/backend/lfs/handler_git_lfs.go#L95
	SendsOn   bool
	MakesOver bool // creating a repo that is there is 200, too, and changes nothing
	ReadOnly  bool // whatever would write is 405
}

// Servers are the ways of servers that people run: the Hub, KohakuHub, a server of git repos, and a
// read-only mirror.
var Servers = map[string]Ways{
	"hub": {},
	"kohakuhub": {LongCommits: true, AnswersHead: true, NoHashes: true, NoTracking: true,
		NoSlashes: true, Details: true},
	"git": {NoHashes: true, NoTracking: true, NoSlashes: true, Stale500: true,
		EmptySHA: true, MakesOver: true},
	"mirror": {NoSizes: true, ReadOnly: true},
}

// WithWays makes the server speak in other ways.
func WithWays(w Ways) Option { return func(c *config) { c.Ways = w } }

// waysKey is where the context of a request has the server's ways.
type waysKey struct{}
