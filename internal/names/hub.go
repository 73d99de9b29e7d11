package names

import (
	"net/url"
	"slices"
	"strings"
)

// HubHosts are the names of the public Hub, and that of its best known mirror. Addresses there need no
// https://.
var HubHosts = []string{"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"}

// IsPublicHub reports whether an endpoint is one of these hosts, so the public Hub has the models that
// are there.
func IsPublicHub(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && slices.Contains(HubHosts, strings.ToLower(u.Hostname()))
}
