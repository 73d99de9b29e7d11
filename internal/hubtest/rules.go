package hubtest

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hubrules"
)

// A Rule is a rule of the Hub, and how the Hub answers a request that breaks it. All rules hold
// for every server, unless an option says otherwise.
type Rule struct {
	Name  string
	Limit int64 // the number in the rule, or 0
	// The answer: its status, its X-Error-Code, and the text in X-Error-Message and in the body's
	// member error. The text has verbs for what was wrong.
	Status  int
	Code    string
	Message string
	// Source is the document or thread that the rule and the answer come from.
	Source string
}

// refuse returns the rule's answer about args.
func (r *Rule) refuse(args ...any) *refusal { return failCode(r.Status, r.Code, r.Message, args...) }

const (
	onLimits = "https://huggingface.co/docs/hub/storage-limits"
	onClient = "https://github.com/huggingface/huggingface_hub, v2.4.0: "
	onErrors = onClient + "errors.py and utils/_http.py"
)

// The rules, each where the code applies it.
var (
	ruleFolder = rule(Rule{"files in a folder", hubrules.FolderFiles, http.StatusBadRequest, "",
		"Your push was rejected because it contains too many files per directory. Each directory in " +
			"your git repo can only contain up to 10000 files. Offending reference: refs/heads/%s " +
			"Offending directories: /%s",
		"https://github.com/huggingface/datasets/issues/7956"})
	// The text is of the time when the limit was 50 GB.
	ruleFileSize = rule(Rule{"size of a file", hubrules.FileBytes, http.StatusUnprocessableEntity, "",
		"Maximum individual file size is 500.0GB",
		onLimits + "; https://github.com/huggingface/huggingface_hub/issues/1933"})
	ruleGitFile = rule(Rule{"size of a file in git", hubrules.GitFileBytes, http.StatusBadRequest, "",
		"Your push was rejected because it contains files larger than 10 MiB. Please use " +
			"https://git-lfs.github.com/ to store large files. Offending files: - %s",
		"https://github.com/huggingface/huggingface_hub/issues/2666"})
	ruleCommitFiles = rule(Rule{"large files of a commit", hubrules.CommitFiles,
		http.StatusRequestEntityTooLarge, "", "the commit has too many files",
		onClient + "hf_api.py, create_commit"})
	ruleCommitBytes = rule(Rule{"bytes of a commit", hubrules.CommitBytes,
		http.StatusRequestEntityTooLarge, "", "the commit payload is too large",
		onClient + "hf_api.py, create_commit"})
	ruleRepoName = rule(Rule{"name of a repo", hubrules.NameBytes, http.StatusBadRequest, "",
		"Invalid repo name: %s", onClient + "utils/_validators.py"})
	ruleFileName = rule(Rule{"name of a file", maxFileName, http.StatusBadRequest, "",
		"Invalid path: %q", "no file system that git writes to takes a longer one: " +
			"https://en.wikipedia.org/wiki/Comparison_of_file_systems#Limits"})
	ruleCard = rule(Rule{"values of a card", 0, http.StatusBadRequest, "",
		"Invalid metadata in README.md.\n- %s",
		"https://github.com/espnet/espnet_model_zoo/pull/102; internal/hubrules/card.go has more"})
	rulePrivate = rule(Rule{"private storage", hubrules.PrivateBytes, http.StatusForbidden, "",
		quotaText, onLimits + "; https://github.com/huggingface/huggingface_hub/issues/3049"})
	ruleNamespace = rule(Rule{"no right in an organization", 0, http.StatusForbidden, "",
		"You don't have the rights to create a model under the namespace %q",
		onClient + "hf_api.py, create_repo"})
	ruleWrite = rule(Rule{"no right to write", 0, http.StatusForbidden, "",
		"You don't have the rights to write to %s", onErrors})
	ruleReadToken = rule(Rule{"a token for reading", 0, http.StatusForbidden, "",
		"You must use a write token to upload to a repository.",
		"https://huggingface.co/docs/hub/security-tokens"})
	ruleGatedAnonymous = rule(Rule{"gated, without a token", 0, http.StatusUnauthorized, codeGatedRepo,
		"Access to model %s is restricted. You must have access to it and be authenticated to access " +
			"it. Please log in.", onErrors})
	ruleGated = rule(Rule{"gated", 0, http.StatusForbidden, codeGatedRepo,
		"Access to model %s is restricted and you are not in the authorized list. Visit %s to ask for " +
			"access.", onErrors})
	ruleDisabled = rule(Rule{"disabled", 0, http.StatusForbidden, "",
		"Access to this resource is disabled.", onErrors})
	ruleRenamed = rule(Rule{"renamed", 0, http.StatusTemporaryRedirect, "", "",
		"https://huggingface.co/docs/hub/repositories-settings#renaming-or-transferring-a-repo"})
)

// Rules lists all rules.
var Rules []*Rule

func rule(r Rule) *Rule {
	Rules = append(Rules, &r)
	return &r
}

// maxFileName is the most bytes of a file's name.
const maxFileName = 255

// checkFolders applies the limit of files in a folder to a commit. Folders count, too.
func (c *config) checkFolders(files map[string]File, branch string) error {
	entries := map[string]map[string]bool{}
	for p := range files {
		for dir := path.Dir(p); ; p, dir = dir, path.Dir(dir) {
			if entries[dir] == nil {
				entries[dir] = map[string]bool{}
			}
			entries[dir][p] = true
			if dir == "." {
				break
			}
		}
	}
	for dir, list := range entries {
		if int64(len(list)) > c.limit(ruleFolder) {
			return ruleFolder.refuse(branch, strings.TrimPrefix(dir+"/", "./"))
		}
	}
	return nil
}

// privateBytes returns what the private repos of a namespace store.
func (s *store) privateBytes(namespace string) (n int64) {
	seen := map[string]bool{}
	for _, rp := range s.repos {
		if !rp.opts.Private || rp.namespace() != namespace {
			continue
		}
		for sha := range rp.holds {
			if o := s.objects[sha]; o != nil && !seen[sha] {
				seen[sha] = true
				n += o.size
			}
		}
	}
	return n
}

// checkRoom refuses more large files than the namespace's private storage has room for.
func (c *call) checkRoom(size int64) error {
	if c.repo.opts.Private && c.privateBytes(c.repo.namespace())+size > c.cfg.limit(rulePrivate) {
		return rulePrivate.refuse()
	}
	return nil
}

// cardFaults returns what's wrong with a model card.
func cardFaults(readme string) (wrong []string) {
	card, err := parseCard(readme)
	if err != nil {
		return []string{fmt.Sprintf("Invalid YAML in README.md: %v", err)}
	}
	for _, f := range hubrules.CheckCard(card) {
		wrong = append(wrong, f.Message)
	}
	return wrong
}
