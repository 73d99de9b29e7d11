package plan

// Reader says whether one program will load the output.
type Reader struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	OK      bool   `json:"ok"`
	Why     string `json:"why,omitempty"` // first rule that fails, or a condition
}
