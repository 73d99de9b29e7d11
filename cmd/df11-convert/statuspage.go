package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

// pageFlags say where status writes what people and other pages read.
type pageFlags struct {
	html   string // a page about the list
	badges string // folder of a picture per model
}

func (f *pageFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.html, "html", "", "write a page about the list to this `file`")
	p.StringVar(&f.badges, "badges", "",
		"write a badge for each model to this `folder`, as ORG--NAME.svg")
}

// checkPage checks the file of --html; "" is none.
func checkPage(html string) error {
	if html != "" && filepath.Ext(html) != ".html" { // it could replace weights, or the list
		return usagef("--html %s: want a name that ends in .html", html)
	}
	return nil
}

// write writes what the flags ask for. links returns the address of a repo, or "".
func (f *pageFlags) write(u *ui, list string, found []publication,
	links func(side, repo string) string) error {
	now := time.Now()
	models := make([]charts.Published, len(found))
	for i, p := range found {
		models[i] = p.show(now, links)
	}
	if f.html != "" {
		page, err := charts.StatusHTML(filepath.Base(list), models,
			now.UTC().Format("2006-01-02 15:04 UTC"), versionText())
		if err != nil {
			return err
		}
		if err := disk.WriteFile(f.html, page, 0o666); err != nil {
			return err
		}
		u.say("page written to %s", f.html)
	}
	return f.writeBadges(u, found, models, now.UTC().Format(time.DateOnly))
}

// writeBadges writes the badges, and says which others lie in their folder.
func (f *pageFlags) writeBadges(u *ui, found []publication, models []charts.Published, day string) error {
	if f.badges == "" {
		return nil
	}
	if err := os.Mkdir(f.badges, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	written := map[string]bool{}
	for i, m := range models {
		if found[i].State == stateUnknown { // an older badge says more
			continue
		}
		name := strings.ReplaceAll(cmp.Or(found[i].repo, found[i].Source), "/", "--") + ".svg"
		if err := disk.WriteFile(filepath.Join(f.badges, name), m.Badge(day), 0o666); err != nil {
			return err
		}
		written[name] = true
	}
	u.say("%s written to %s", human.Count(len(written), "badge"), f.badges)
	badges, err := fs.Glob(os.DirFS(f.badges), "*--*.svg")
	others := slices.DeleteFunc(badges, func(name string) bool { return written[name] })
	if err == nil && len(others) > 0 {
		u.say("left as they were: %s", human.List(others))
	}
	return nil
}

// show returns the publication as the page shows it.
func (p *publication) show(now time.Time, links func(side, repo string) string) charts.Published {
	source, _, _ := strings.Cut(p.Source, "@")
	m := charts.Published{
		Source: charts.Link{Name: p.Source, URL: links("source", source)},
		State:  p.shownState(), Mood: charts.Bad, BF16: p.SourceBytes, DF11: p.ResultBytes,
		Made: p.Converted, Weights: p.Weights, Needs: p.needs(),
	}
	if p.Target != "" {
		m.Target.Name = p.Target
	}
	if p.Converted != "" { // a repo that's missing has no page
		m.Target.URL = links("target", p.Target)
	}
	if p.Published != nil {
		m.Updated = p.Published.UTC().Format(time.DateOnly)
		m.Days = max(0, int(now.Sub(*p.Published).Hours()/24))
	}
	switch {
	case p.Error != nil, p.State == stateUnknown:
	case p.Todo:
		m.Mood = charts.Pending
	case p.State == pipeline.Current && !p.CardIsStale:
		m.Mood = charts.Good
	default:
		m.Mood = charts.Out
	}
	return m
}

// links returns the addresses of repos on the Hubs of both sides.
func (f *convertFlags) links(ctx context.Context, u *ui) func(side, repo string) string {
	return func(side, repo string) string {
		c, err := f.client(u, side)
		if err != nil || ctx.Err() != nil || !strings.Contains(repo, "/") {
			return ""
		}
		return c.Endpoint() + "/" + repo
	}
}
