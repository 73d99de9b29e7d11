package hubtest

import (
	"maps"
	"slices"
)

// LlamaModel is NewLlama with every file in memory.
func LlamaModel(seed uint64, opt ModelOptions) map[string][]byte { return NewLlama(seed, opt).Files() }

// Qwen3Model is NewQwen3 with every file in memory.
func Qwen3Model(seed uint64, opt ModelOptions) map[string][]byte { return NewQwen3(seed, opt).Files() }

// Repos lists the names of all repos, sorted.
func (s *store) Repos() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.repos))
}

// Alias lets an old name, with or without namespace ("gpt2"), answer with redirects to a repo.
func (s *store) Alias(old, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renames[old] = name
}

// Holds says whether the repo's LFS store has the object, committed or not.
func (s *store) Holds(name, sha256 string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rp := s.repos[name]
	return rp != nil && rp.holds[sha256]
}
