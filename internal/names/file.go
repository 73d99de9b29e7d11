package names

// A File identifies a file in a list from a Hub, a journal, or a manifest. Two files are the same
// only if they're equal, because a Hub may list a file's new hash with its old size.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // "" if the list has no hash, as for small files of a repo
}

// MayBe reports whether a listed file, perhaps without a hash, can be the other one.
func (f File) MayBe(other File) bool {
	if f.SHA256 == "" {
		other.SHA256 = ""
	}
	return f == other
}
