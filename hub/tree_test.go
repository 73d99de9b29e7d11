package hub

import "testing"

func TestNextLink(t *testing.T) {
	for in, want := range map[string]string{
		``:                                     "",
		`<https://h/x?cursor=a,b>; rel="next"`: "https://h/x?cursor=a,b",
		`<https://h/1>; rel="prev", <https://h/2>; rel=next`: "https://h/2",
		`<https://h/1>; rel="xet-auth"`:                      "",
		`<https://h/1; rel="next"`:                           "",
		`garbage`:                                            "",
	} {
		if got := append(nextLink.FindStringSubmatch(in), "", "")[1]; got != want {
			t.Errorf("%s: got %q", in, got)
		}
	}
}
