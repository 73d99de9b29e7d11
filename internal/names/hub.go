package names

import (
	"slices"
	"strings"
)

// HubHosts are the names of the public Hub, and that of its best known mirror. Addresses there need no
// https://.
var HubHosts = []string{"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"}

// IsPublicHub reports whether an endpoint, as a client of the Hub gives it, is one of these hosts. So
// the public Hub has the models that are there.
func IsPublicHub(endpoint string) bool {
	_, host, _ := strings.Cut(endpoint, "://")
	host, _, _ = strings.Cut(host, "/")
	host, _, _ = strings.Cut(host, ":")
	return slices.Contains(HubHosts, strings.ToLower(host))
}
