package hub

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// request is one thing to ask, repeatable: its body can be opened again.
type request struct {
	op     string // for errors: "read model info of ns/name"
	repo   string // empty if the request is about no repo
	method string
	url    string
	header http.Header
	body   func() io.Reader // nil for none
	size   int64            // exact length of the body
	bulk   bool             // file bytes: throttled, counted
	follow followRule
	token  bool          // send the token if the hop is on the hub
	slow   time.Duration // time to the headers if longer than usual
	slot   *slot         // of a transfer, given back after each try; nil for a request that needs none

	bearer   string // the token, where one is sent
	progress bool   // the latest try brought bytes: the count of failures starts again
}

// followRule says which redirects a request follows.
type followRule int

const (
	followHub      followRule = iota // API reads: no other origin may answer for the hub
	followAll                        // GET of file bytes
	followRelative                   // metadata HEAD: an absolute Location is the answer
	followSame                       // bodies: 307 and 308 only, and no other origin but for file bytes
)

// get is the request for an API read.
func get(op, repo, url string) *request {
	return &request{op: op, repo: repo, method: http.MethodGet, url: url, token: true}
}

// send is the request for an API call with a JSON body.
func send(op, repo, method, url string, body any) *request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("hub: internal error: " + err.Error()) // bodies are made of strings and numbers
	}
	return &request{op: op, repo: repo, method: method, url: url, token: true, follow: followSame,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   func() io.Reader { return bytes.NewReader(data) }, size: int64(len(data))}
}
