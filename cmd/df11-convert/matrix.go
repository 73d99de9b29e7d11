package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
)

// maxJobs is the most jobs that a matrix of GitHub Actions may have.
const maxJobs = 256

// weightsPerSecond is what a small CI runner encodes and verifies; on 2 cores of 2023 it is at least this.
const weightsPerSecond = 150_000_000

// startSeconds are for what every part does before and after the weights: headers, the plan, the last commit.
const startSeconds = 120

// matrix divides a conversion into jobs, each of which should take no longer than limit. It is in the form that a matrix of
// GitHub Actions takes; the only job of a small model has an empty part.
type matrix struct {
	Include []matrixJob `json:"include"`
}

type matrixJob struct {
	Shard string `json:"shard"` // i/n for --shard, "" where one job makes all
}

// jobs computes the matrix. A model that even the largest number of jobs cannot convert in time is refused.
func (f *forecast) jobs(limit time.Duration) (m matrix, err error) {
	work := max(f.seconds(f.needs.Download), f.seconds(f.needs.Upload), float64(f.weights())/weightsPerSecond)
	left := limit.Seconds() - startSeconds
	if left <= 0 {
		return m, usagef("--job-time %s leaves no time for work: it takes %d s to begin and end", limit, startSeconds)
	}
	n := int(math.Ceil(work / left))
	if n > maxJobs {
		return m, fmt.Errorf("a matrix holds %d jobs at most, and %d of %s would be needed: give each more time with --job-time", maxJobs, n, limit)
	}
	n = min(n, len(f.plan.OutputFiles))
	if n <= 1 {
		return matrix{[]matrixJob{{}}}, nil
	}
	for i := range n {
		m.Include = append(m.Include, matrixJob{fmt.Sprintf("%d/%d", i+1, n)})
	}
	return m, nil
}

// weights counts the weights of all compressed modules.
func (f *forecast) weights() (n int64) {
	for _, u := range f.plan.Units {
		n += u.NElems()
	}
	return n
}

// modelMatrix is the models of a list that are to be converted, a job for each. Its members are the inputs of
// .github/workflows/convert.yml.
type modelMatrix struct {
	Include []modelJob `json:"include"`
}

type modelJob struct {
	Source    string `json:"source"`
	RepoID    string `json:"repo-id"`
	Private   string `json:"private"` // true, or empty: as the source
	ExtraArgs string `json:"extra-args"`
}

// add appends a model. Its target is named in full where that is known.
func (m *modelMatrix) add(entry listedModel, p publication) error {
	args, err := entry.arguments()
	if err != nil {
		return err
	}
	job := modelJob{Source: entry.spec(), RepoID: cmp.Or(p.Target, entry.RepoID), ExtraArgs: args}
	if entry.Private != nil && *entry.Private {
		job.Private = "true"
	}
	m.Include = append(m.Include, job)
	return nil
}

// printMatrix writes a matrix in one line, as GITHUB_OUTPUT wants it.
func printMatrix(w io.Writer, matrix any) {
	b, _ := json.Marshal(matrix) // strings cannot fail
	printf(w, "%s\n", b)
}
