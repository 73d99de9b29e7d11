package metadata

import (
	"fmt"
	"maps"
	"slices"
)

// The types that a Statement names (docs/manifest.md, "Attestation").
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/df11-convert/df11-convert/blob/main/docs/manifest.md#attestation"
	builderID     = "https://github.com/df11-convert/df11-convert"
)

// Statement says about a manifest's files what in-toto statements (v1) with SLSA provenance (v1) say about any software: which
// files, made of what, by which program. Signers of such statements can sign it. It has no times and no hosts: the same manifest
// and program give the same statement.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Provenance `json:"predicate"`
}

// Provenance says how the subject was made.
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition is what was made of what.
type BuildDefinition struct {
	BuildType    string          `json:"buildType"`
	Parameters   BuildParameters `json:"externalParameters"`
	Dependencies []Resource      `json:"resolvedDependencies"`
}

// BuildParameters are what the user decided. The source is not among them: it is a dependency.
type BuildParameters struct {
	Plan PlanInfo `json:"plan"`
}

// RunDetails are about the program.
type RunDetails struct {
	Builder Builder `json:"builder"`
}

// Builder is the program: its version by its name, and its executable.
type Builder struct {
	ID           string            `json:"id"`
	Version      map[string]string `json:"version"`
	Dependencies []Resource        `json:"builderDependencies"`
}

// Resource is an in-toto resource descriptor: a file with its sha256, or a repo with its commit.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

func fileResource(name, sha256 string) Resource {
	return Resource{Name: name, Digest: map[string]string{"sha256": sha256}}
}

// Statement makes the statement of a manifest. It takes the sha256 of the manifest's own file and that of the program.
func (m *Manifest) Statement(manifestSHA256, programSHA256 string) *Statement {
	s := &Statement{Type: statementType, PredicateType: predicateType}
	for _, f := range m.Outputs {
		s.Subject = append(s.Subject, fileResource(f.Path, f.SHA256))
	}
	s.Subject = append(s.Subject, fileResource(ManifestName, manifestSHA256))
	made := &s.Predicate.BuildDefinition
	made.BuildType, made.Parameters.Plan = buildType, m.Plan
	if m.Source.Commit != "" {
		purl := "pkg:huggingface/" + m.Source.Repo + "@" + m.Source.Commit
		made.Dependencies = append(made.Dependencies, Resource{URI: purl, Digest: map[string]string{"gitCommit": m.Source.Commit}})
	}
	for _, f := range m.Source.Files {
		if f.SHA256 != "" {
			made.Dependencies = append(made.Dependencies, fileResource(f.Path, f.SHA256))
		}
	}
	s.Predicate.RunDetails.Builder = Builder{
		ID: builderID, Version: map[string]string{m.Tool.Name: m.Tool.Version},
		Dependencies: []Resource{fileResource(m.Tool.Name, programSHA256)},
	}
	return s
}

// Marshal returns the statement as JSON.
func (s *Statement) Marshal() ([]byte, error) { return indented(s) }

// Names reports whether the statement is about a file with this name and sha256.
func (s *Statement) Names(name, sha256 string) bool {
	return slices.ContainsFunc(s.Subject, func(r Resource) bool { return r.Name == name && r.Digest["sha256"] == sha256 })
}

// Builder names the program that made the files, with its version, and gives the sha256 of its executable.
func (s *Statement) Builder() (program, sha256 string) {
	b := s.Predicate.RunDetails.Builder
	for name, version := range b.Version {
		program = name + " " + version
	}
	for _, r := range b.Dependencies {
		sha256 = r.Digest["sha256"]
	}
	return program, sha256
}

// Difference is something that a statement does not say as it should. Name is the file, or what else it is about.
type Difference struct{ Name, Fault string }

// Differences compares a statement with the one that it should be, but for the builder.
func (s *Statement) Differences(should *Statement) (ds []Difference) {
	add := func(name, format string, args ...any) {
		ds = append(ds, Difference{name, fmt.Sprintf(format, args...)})
	}
	compare := func(prefix string, said, is []Resource) {
		claims, facts := digests(said), digests(is)
		for _, name := range slices.Sorted(maps.Keys(facts)) {
			switch claim, named := claims[name]; {
			case !named:
				add(prefix+name, "in the manifest but not in the attestation")
			case claim != facts[name]:
				add(prefix+name, "%s in the manifest, but %s in the attestation", facts[name], claim)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			if _, there := facts[name]; !there {
				add(prefix+name, "in the attestation, with %s, but not in the manifest", claims[name])
			}
		}
	}
	compare("", s.Subject, should.Subject)
	made, shouldBe := s.Predicate.BuildDefinition, should.Predicate.BuildDefinition
	compare("original: ", made.Dependencies, shouldBe.Dependencies)
	if made.Parameters != shouldBe.Parameters {
		add(ManifestName, "plan is %+v, but %+v in the attestation", shouldBe.Parameters.Plan, made.Parameters.Plan)
	}
	return ds
}

// digests gives each resource's digest, in words, by its name or URI.
func digests(rs []Resource) map[string]string {
	m := map[string]string{}
	for _, r := range rs {
		if commit := r.Digest["gitCommit"]; r.URI != "" {
			m[r.URI] = "commit " + commit
			continue
		}
		m[r.Name] = "sha256 " + r.Digest["sha256"]
	}
	return m
}
