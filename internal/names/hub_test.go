package names

import "testing"

func TestIsPublicHub(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://huggingface.co": true, "https://HuggingFace.co/": true, "https://hf-mirror.com": true,
		"https://huggingface.co:443": true, "http://127.0.0.1:8080": false, "https://hub.example/huggingface.co": false,
		"https://huggingface.co.example": false, "": false, ":": false,
	} {
		if IsPublicHub(endpoint) != want {
			t.Errorf("%q: want %v", endpoint, want)
		}
	}
}
