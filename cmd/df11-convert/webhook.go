package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/python"
)

// The variables of a Job that a webhook of the Hub started: deploy/webhook.
const (
	eventRepo    = "WEBHOOK_REPO_ID"
	eventType    = "WEBHOOK_REPO_TYPE"
	eventPayload = "WEBHOOK_PAYLOAD"
)

// event has the members that we read of a payload: https://huggingface.co/docs/hub/webhooks.
type event struct {
	Event struct {
		Action string `json:"action"`
		Scope  string `json:"scope"`
	} `json:"event"`
	Updated []updatedRef `json:"updatedRefs"`
}

type updatedRef struct {
	Ref string `json:"ref"`
}

// runEvent converts the model of the event that started this Job, unless skipEvent finds a reason
// not to.
func runEvent(ctx context.Context, u *ui, f *convertFlags) error {
	repo := os.Getenv(eventRepo)
	why, err := f.skipEvent(ctx, u, repo)
	if err != nil {
		return err
	}
	if why == "" {
		return runConvert(ctx, u, f, "hf://"+repo) // and not a folder of that name
	}
	u.command = "webhook"
	u.result(map[string]any{"source": repo, "skipped": why}, "", func(w io.Writer) {
		printf(w, "nothing to convert in %s: %s\n", repo, why)
	})
	return nil
}

// skipEvent returns why there's nothing to convert: the event changes nothing that we read, or the
// repo has no files yet or is itself a result, finished or not.
func (f *convertFlags) skipEvent(ctx context.Context, u *ui, repo string) (string, error) {
	kind, payload := os.Getenv(eventType), os.Getenv(eventPayload)
	var e event
	if payload != "" && python.Unmarshal([]byte(payload), &e) != nil {
		return "", usagef("%s isn't an event of the Hub", eventPayload)
	}
	if kind != "" && kind != "model" || e.Event.Action == "delete" ||
		!strings.HasPrefix(e.Event.Scope, "repo") && e.Event.Scope != "" ||
		e.Updated != nil && !slices.Contains(e.Updated, updatedRef{"refs/heads/main"}) {
		return "the event changes no model's branch main", nil
	}
	a, err := address.Parse(repo)
	if err == nil && names.CheckNewRepo(a.Repo) != nil {
		err = address.NotFound(a.ID())
	}
	if err != nil {
		return "", err
	}
	c, err := f.client(u, "source")
	if err != nil {
		return "", err
	}
	at, err := c.Describe(ctx, a.Repo, a.Revision)
	if err != nil {
		return "", err
	}
	empty := true
	for _, file := range at.Files {
		if file.Path == names.Manifest || strings.HasPrefix(file.Path, names.JournalDir+"/") {
			return "this program made it", nil
		}
		empty = empty && (file.Path == names.Attributes || file.Path == names.Card)
	}
	if empty { // as a target that another run has just created
		return "it has no files yet", nil
	}
	return "", nil
}
