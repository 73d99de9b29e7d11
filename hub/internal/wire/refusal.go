package wire

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/smallfile"
)

// maxErrorBody caps how much of an error answer is read.
const maxErrorBody = 64 << 10

// read takes from an answer what it says of itself. The message of the headers counts before that of the body.
func (e *Error) read(resp *http.Response, now time.Time) {
	body, _ := smallfile.All(resp.Body, maxErrorBody)
	h := resp.Header
	e.Status = resp.StatusCode
	// One of these ids the operators can search for.
	e.RequestID = OneLine(cmp.Or(h.Get("X-Request-Id"), h.Get("X-Amzn-Trace-Id"), h.Get("X-Amz-Request-Id"), h.Get("X-Amz-Cf-Id")))
	e.Code = OneLine(h.Get("X-Error-Code"))
	e.Message = OneLine(h.Get("X-Error-Message"))
	e.wait = parseWait(resp, now)
	if e.Message == "" {
		e.readBody(h.Get("Content-Type"), body)
	}
}

// readBody takes the message from a JSON or storage XML body; HTML and other text is never shown.
func (e *Error) readBody(contentType string, body []byte) {
	trimmed := strings.TrimSpace(string(body))
	switch {
	case strings.HasPrefix(trimmed, "{"):
		e.Message = jsonMessage([]byte(trimmed))
	case strings.Contains(contentType, "html"):
	case strings.HasPrefix(trimmed, "<?xml"), strings.HasPrefix(trimmed, "<Error>"):
		var x struct {
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		}
		if xml.Unmarshal([]byte(trimmed), &x) == nil {
			e.Code, e.Message = OneLine(x.Code), OneLine(x.Message)
		}
	case strings.HasPrefix(contentType, "text/plain"):
		e.Message = OneLine(trimmed)
	}
}

// jsonMessage reads {"error": text or list}, {"errors":[{"message"}]}, and OAuth's error_description.
func jsonMessage(body []byte) string {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"error_description"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	var texts []string
	var one string
	if json.Unmarshal(doc.Error, &one) == nil && one != "" {
		texts = append(texts, one)
	} else {
		_ = json.Unmarshal(doc.Error, &texts)
	}
	for _, e := range doc.Errors {
		texts = append(texts, e.Message)
	}
	if doc.Detail != "" {
		texts = append(texts, doc.Detail)
	}
	if len(texts) == 0 {
		texts = append(texts, doc.Message)
	}
	return OneLine(strings.Join(texts, "; "))
}

var quotaText = regexp.MustCompile(`(?i)storage (limit|patterns?|quota|space)|quota|exceed(s|ed)? (your|the) .*(storage|limit)`)

var byCode = map[string]error{"RepoNotFound": ErrNotFound, "RevisionNotFound": ErrRevisionNotFound,
	"EntryNotFound": ErrEntryNotFound, "GatedRepo": ErrGated}

// classify gives the sentinel of an answer from the hub itself.
func classify(e *Error) error {
	if told, ok := byCode[e.Code]; ok {
		return told
	}
	switch e.Status {
	case http.StatusUnauthorized:
		if e.TokenSource == "" && !strings.Contains(strings.ToLower(e.Message), "credentials") && e.Repo != "" {
			return ErrNotFound // without a token, private and missing repos are refused alike
		}
		return ErrUnauthorized
	case http.StatusForbidden, http.StatusPaymentRequired:
		if strings.Contains(e.Message, "Access to this resource is disabled") {
			return ErrDisabled
		}
		if quotaText.MatchString(e.Message) {
			return ErrQuota
		}
		return ErrForbidden
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return ErrConflict
	case http.StatusTooManyRequests:
		return ErrRateLimited
	case http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	}
	return nil
}
