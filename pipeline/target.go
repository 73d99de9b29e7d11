package pipeline

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// checkFolder refuses to put a result among other things in places where that's a mistake: the
// current folder, the home, and the root of the file system.
func checkFolder(dir, model string) error {
	is := func(place string) bool {
		a, err := os.Stat(dir)
		b, err2 := os.Stat(place)
		return errors.Join(err, err2) == nil && os.SameFile(a, b)
	}
	if !is(".") && !is(homeDir()) && !is(filepath.VolumeName(dir)+string(filepath.Separator)) {
		return nil
	}
	var others []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		switch name := e.Name(); {
		case name == names.Manifest, name == names.StateDir: // an earlier run's
			return nil
		case !strings.HasPrefix(name, ".") && !startsRepo.MatchString(name):
			others = append(others, name)
		}
	}
	if len(others) == 0 || err != nil {
		return err
	}
	return hint.On(usage.Errorf("the result would land among other files in %s: %s", dir,
		human.List(others)), hint.FolderInUse.With("folder",
		filepath.Join(dir, model+names.ResultEnd)))
}

// startsRepo matches what a clone of a new repo holds.
var startsRepo = regexp.MustCompile(`(?i)^(readme|licen[cs]e|notice)([.-]|$)`)

// push finds out where to publish: to the given repo, or to the user's own repo with the model's
// name. It asks the Hub who the user is only if no namespace is given, because the Hub limits that
// request.
func (s *session) push(ctx context.Context, o *Options, model string) (*publish.Push, error) {
	c, err := s.client("target")
	if err != nil {
		return nil, err
	}
	push := &publish.Push{Hub: c, Repo: o.Repo, Revision: o.Branch}
	if o.Visibility != "" {
		push.Private = new(o.Visibility == Private)
	}
	if only := c.OnlyRepo(); only != "" {
		if push.Repo = cmp.Or(push.Repo, only); push.Repo != only {
			return nil, hint.On(usage.Errorf("--repo-id %s: trusted publishing is for %s", push.Repo,
				only), hint.PublisherRepo)
		}
	}
	push.Repo = cmp.Or(push.Repo, model+names.ResultEnd)
	if !strings.Contains(push.Repo, "/") {
		me, err := c.WhoAmI(ctx)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(o.Repo, me) {
			return nil, hint.On(usage.Errorf("--repo-id %s: that's the name of your account, and names no repo",
				o.Repo), hint.AccountName.With(
				"repo", names.FullRepo(me, model+names.ResultEnd),
				"same", names.FullRepo(me, me)))
		}
		push.Repo = names.FullRepo(me, push.Repo)
	}
	if names.CheckNewRepo(push.Repo) != nil && o.Repo == "" {
		return nil, hint.On(usage.Errorf("the Hub takes no repo named %q", push.Repo),
			hint.RepoName)
	}
	return push, validRepo("--repo-id", push.Repo)
}

// workDir returns the work folder of one job: the options', or one in it or in the user's cache. A
// job that publishes has a repo. The same job always gets the same folder, so a rerun finds earlier
// work. Other jobs, such as other parts of the model, get other folders, so they can run at the
// same time.
func (o *Options) workDir(repo, digest string) string {
	in := o.WorkDir
	if in != "" && !o.SharedWorkDir {
		return in
	}
	if in == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = filepath.Join(homeDir(), ".cache")
		}
		in = filepath.Join(cache, "df11-convert")
	}
	name := digest[:16]
	if repo != "" {
		name = strings.ReplaceAll(repo, "/", "--") + "-" + name
	}
	if part := o.part(); !part.Whole() {
		name += "-" + part.String()
	}
	return filepath.Join(in, name)
}
