package names

import (
	"slices"
	"strings"
)

// HubHosts are the names of the public Hub, and that of its best known mirror. Addresses there need
// no
// https://.
var HubHosts = []string{"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"}

// ResultEnd ends the name of a result, after that of its source, if the user names none.
const ResultEnd = "-DF11"

// FullRepo adds a namespace to a repo's name without one.
func FullRepo(namespace, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// NamesRepo reports whether the Hub takes a repo with the name that a model's result gets if the
// user names none.
func NamesRepo(model string) bool { return CheckNewRepo(FullRepo("you", model+ResultEnd)) == nil }

// IsPublicHub reports whether an endpoint, as a client of the Hub gives it, is one of these hosts.
// So the public Hub has the models that are there.
func IsPublicHub(endpoint string) bool {
	_, host, _ := strings.Cut(endpoint, "://")
	host, _, _ = strings.Cut(host, "/")
	host, _, _ = strings.Cut(host, ":")
	return slices.Contains(HubHosts, strings.ToLower(host))
}
