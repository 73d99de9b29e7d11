package main

import (
	"maps"
	"testing"
)

func TestReadAllProxy(t *testing.T) {
	for _, tt := range []struct{ env, want map[string]string }{
		{map[string]string{}, map[string]string{}},
		{map[string]string{"ALL_PROXY": "p"}, map[string]string{"HTTP_PROXY": "p", "HTTPS_PROXY": "p"}},
		{map[string]string{"all_proxy": "socks5://p:1", "HTTPS_PROXY": "q"}, map[string]string{"HTTP_PROXY": "socks5://p:1"}},
		{map[string]string{"ALL_PROXY": "p", "https_proxy": "q", "http_proxy": "r"}, map[string]string{}},
	} {
		got := map[string]string{}
		readAllProxy(func(name string) string { return tt.env[name] }, func(name, value string) error { got[name] = value; return nil })
		if !maps.Equal(got, tt.want) {
			t.Errorf("%v: set %v", tt.env, got)
		}
	}
}
