package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// finishParts converts part after part, finishes them, and compares the repo with that of a single
// run under the same name.
func (p *program) finishParts(ctx context.Context, r *result) error {
	var steps []step
	run := func(which ...string) error {
		s, err := p.run(ctx, 0, which...)
		steps = append(steps, s)
		return err
	}
	var one map[string]string
	if p.compare {
		if err := run(); err != nil {
			return err
		}
		var err error
		if one, err = p.everything("streamed", r.files); err != nil {
			return err
		}
		p.hub.RemoveRepo(target)
	}
	for i := range p.finish {
		if err := run("--shard", fmt.Sprintf("%d/%d", i+1, p.finish)); err != nil {
			return err
		}
	}
	if err := run("--finish"); err != nil {
		return err
	}
	parts, err := p.everything("proof", r.files)
	if err != nil {
		return err
	}
	same := "not compared: every source file was proved by its SHA-256"
	if p.compare {
		if !maps.Equal(one, parts) {
			return fmt.Errorf(
				"the repo of the parts has %d files, that of a single run %d, and they are not the same", len(parts), len(one))
		}
		same = fmt.Sprintf(
			"%d files, each with the bytes that a single run gives, but for %d words in the manifest: proof for streamed", len(one), r.files)
	}
	fmt.Println("model:", r.model())
	printRuns(os.Stdout, steps)
	fmt.Println("result:", same)
	return nil
}

// whole checks that the target has all units, and that every source file was compared with its hash
// while it was read, or rebuilt if a run that was killed had worked on it.
func (p *program) whole(r *result) error {
	if n := r.all().Report.Units; n != len(r.plan.Units) {
		return fmt.Errorf("%d of %d units were converted", n, len(r.plan.Units))
	}
	if p.kill == 0 {
		_, err := p.everything("streamed", r.files)
		return err
	}
	all, err := p.everything("streamed", 1)
	if rest := all[manifest]; err == nil && strings.Count(rest,
		`"integrity"`) != strings.Count(rest, `"integrity": "proof"`) {
		err = errors.New("the manifest calls source files neither streamed nor rebuilt")
	}
	return err
}

const manifest = "df11-manifest.json"

// everything lists the files of the target with their hashes, and the manifest with its text. It
// removes the manifest's word about how a source file was checked, and wants the word
// to be the same for nFiles at least.
func (p *program) everything(how string, nFiles int) (map[string]string, error) {
	all := map[string]string{}
	for name, f := range p.hub.Files(target, "main") {
		all[name] = f.SHA256 + f.BlobID
	}
	b, err := p.hub.ReadFile(target, "main", manifest)
	if err != nil {
		return nil, err
	}
	word := fmt.Sprintf("%q: %q", "integrity", how)
	if n := strings.Count(string(b), word); n < nFiles {
		return nil, fmt.Errorf("the manifest calls %d of %d source files %s", n, nFiles, how)
	}
	all[manifest] = strings.ReplaceAll(string(b), word, "")
	return all, nil
}

// busiest counts the requests of each rate bucket in the five minutes with most of them, and all
// requests to the storage host.
func busiest(log []hubtest.Request) map[string]int {
	most := map[string]int{}
	times := map[string][]time.Time{}
	for _, q := range log {
		if q.Host == hubtest.HostCDN {
			most["storage"]++
			continue
		}
		bucket := "api"
		if strings.Contains(q.Path, "/resolve/") || strings.HasPrefix(q.Path,
			"/api/resolve-cache/") {
			bucket = "resolvers"
		}
		ts := append(times[bucket], q.Begin)
		for ts[len(ts)-1].Sub(ts[0]) > 5*time.Minute {
			ts = ts[1:]
		}
		times[bucket] = ts
		most[bucket] = max(most[bucket], len(ts))
	}
	return most
}
