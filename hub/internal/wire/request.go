package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Request is one thing to ask, repeatable: its body can be opened again.
type Request struct {
	Op     string // for errors: "read model info of ns/name"
	Repo   string // empty if the request is about no repo
	Method string
	URL    string
	Header http.Header
	Body   func() io.Reader // nil for none
	Size   int64            // exact length of the body
	Bulk   bool             // file bytes: throttled, counted
	Follow followRule
	Token  bool          // send the token if the hop is on the hub
	Slow   time.Duration // time to the headers if longer than usual
	Slot   *Slot         // of a transfer, given back after each try; nil for a request that needs none

	bearer   string // the token, where one is sent
	Progress bool   // the latest try brought bytes: the count of failures starts again
}

// followRule says which redirects a request follows.
type followRule int

const (
	// followHub is for API reads: no other origin may answer for the hub.
	followHub followRule = iota
	// FollowAll is for a GET of file bytes.
	FollowAll
	// FollowRelative is for a HEAD of metadata: an absolute Location is the answer.
	FollowRelative
	// FollowSame is for bodies: 307 and 308 only, and no other origin but for file bytes.
	FollowSame
)

// Get is the request for an API read.
func Get(op, repo, url string) *Request {
	return &Request{Op: op, Repo: repo, Method: http.MethodGet, URL: url, Token: true}
}

// Send is the request for an API call with a JSON body.
func Send(op, repo, method, url string, body any) *Request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("wire: internal error: " + err.Error()) // bodies are made of strings and numbers
	}
	return &Request{Op: op, Repo: repo, Method: method, URL: url, Token: true, Follow: FollowSame,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   func() io.Reader { return bytes.NewReader(data) }, Size: int64(len(data))}
}
