package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
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

// runEvent converts the model of the event that started this Job. It skips events that change
// nothing we read, and models that are themselves a result, finished or not.
func runEvent(ctx context.Context, u *ui, f *convertFlags) error {
	repo, kind, payload := os.Getenv(eventRepo), os.Getenv(eventType), os.Getenv(eventPayload)
	var e event
	if payload != "" && python.Unmarshal([]byte(payload), &e) != nil {
		return usagef("%s isn't an event of the Hub", eventPayload)
	}
	why := ""
	switch {
	case kind != "" && kind != "model":
		why = "it's a " + kind
	case !strings.HasPrefix(e.Event.Scope, "repo") && e.Event.Scope != "":
		why = "the event is about a " + e.Event.Scope
	case e.Event.Action == "delete":
		why = "it was deleted"
	case e.Updated != nil && !slices.Contains(e.Updated, updatedRef{"refs/heads/main"}):
		why = "its branch main hasn't changed"
	default:
		c, id, revision, err := f.repo(u, "source", repo)
		if err != nil {
			return err
		}
		at, err := c.Peek(ctx, id, revision)
		if err == nil && slices.ContainsFunc(at.Files, func(f hub.FileInfo) bool {
			return f.Path == names.Manifest || strings.HasPrefix(f.Path, names.JournalDir+"/")
		}) {
			why = "this program made it"
		}
	}
	if why == "" {
		return runConvert(ctx, u, f, repo)
	}
	u.command = "webhook"
	u.result(map[string]any{"source": repo, "skipped": why}, "", func(w io.Writer) {
		printf(w, "nothing to convert in %s: %s\n", repo, why)
	})
	return nil
}
