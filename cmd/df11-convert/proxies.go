package main

import "strings"

// readAllProxy makes ALL_PROXY count for every scheme without a variable of its own, as in curl and
// in huggingface_hub, whose httpx2 reads it. Go's net/http doesn't:
// https://pkg.go.dev/net/http#ProxyFromEnvironment.
func readAllProxy(getenv func(string) string, setenv func(name, value string) error) {
	either := func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return getenv(strings.ToLower(name))
	}
	all := either("ALL_PROXY")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if all != "" && either(name) == "" {
			_ = setenv(name, all) // fails only for names that no variable can have
		}
	}
}
