package model

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/hub"
)

// A history knows what a repo held at other commits. It lists each commit once.
type history struct {
	client *hub.Client
	repo   string
	files  map[string][]hub.FileInfo // by commit
}

// NameNow is [hub.Client.Leads] of the source's Hub. It returns "" for a local source.
func (m *Model) NameNow(ctx context.Context, repo string) (string, error) {
	if m.history == nil {
		return "", nil
	}
	return m.history.client.Leads(ctx, repo)
}

// HashAt returns the hash that the source's Hub lists for a file at another commit. It returns ""
// if the commit doesn't have the file or isn't known there, and for a local source.
func (m *Model) HashAt(ctx context.Context, commit, name string) (string, error) {
	if m.history == nil || commit == "" {
		return "", nil
	}
	files, err := m.history.at(ctx, commit)
	for _, f := range files {
		if f.Path == name {
			return f.Hash(), nil
		}
	}
	return "", err
}

// at lists a commit. The list is empty if the Hub doesn't know the commit.
func (h *history) at(ctx context.Context, commit string) ([]hub.FileInfo, error) {
	if files, known := h.files[commit]; known {
		return files, nil
	}
	info, err := h.client.Info(ctx, h.repo, commit)
	switch {
	case err == nil:
		h.files[commit] = info.Files
	case errors.Is(err, hub.ErrNotFound), errors.Is(err, hub.ErrRevisionNotFound),
		errors.Is(err, hub.ErrOffline):
		h.files[commit] = nil
	default:
		return nil, err
	}
	return h.files[commit], nil
}
