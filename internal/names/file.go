package names

// A File is what a file is known by in a list of a Hub, a journal, or a manifest. Two files are the
// same if they're equal: a Hub may list a file's new hash with its old size.
type File struct {
	Path   string
	Size   int64
	SHA256 string // "" if a list doesn't say it, as for small files of a repo
}

// MayBe reports whether a listed file, perhaps without a hash, can be another one.
func (f File) MayBe(other File) bool {
	if f.SHA256 == "" {
		other.SHA256 = ""
	}
	return f == other
}
