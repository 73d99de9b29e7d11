package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// people is a log handler for human readers: each record is one sentence without time and keys.
type people struct {
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
}

func (h people) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h people) Handle(_ context.Context, r slog.Record) error {
	parts := []string{strings.ToLower(strings.Replace(r.Level.String(), "WARN", "WARNING", 1)), r.Message}
	for _, a := range h.attrs {
		parts = append(parts, a.Value.String())
	}
	r.Attrs(func(a slog.Attr) bool {
		parts = append(parts, a.Value.String())
		return true
	})
	_, err := io.WriteString(h.w, lineAndColumn.Replace(strings.Join(parts, ": "))+"\n")
	return err
}

func (h people) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

func (h people) WithGroup(string) slog.Handler { return h } // keys are not shown
