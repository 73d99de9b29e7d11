package hub

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// storedTokens is the file of tokens that `hf auth login` keeps next to the token in use: sections
// named after the tokens, as Python's configparser writes them. It's kept as lines, so that
// everything else in it stays as it is.
type storedTokens struct{ lines []string }

// A storedToken is one section.
type storedToken struct {
	name, token, refresh string
	expires              time.Time // the zero time if unknown
}

// The keys of a section, as huggingface_hub writes them.
const (
	keyToken   = "hf_token"
	keyRefresh = "refresh_token"
	keyExpires = "expires_at" // Unix seconds
)

func parseStored(text string) *storedTokens {
	return &storedTokens{strings.SplitAfter(text, "\n")}
}

func (s *storedTokens) String() string { return strings.Join(s.lines, "") }

// header returns the name in a section's first line.
func header(line string) (name string, ok bool) {
	line = strings.TrimRight(line, " \t\r\n")
	if !strings.HasPrefix(line, "[") || !strings.HasSuffix(line, "]") {
		return "", false
	}
	return line[1 : len(line)-1], true
}

// entry splits a line "key = value". A comment, a blank line, and the second line of a longer value
// have no key.
func entry(line string) (key, value string) {
	if strings.TrimLeft(line, " \t") != line || strings.HasPrefix(line, "#") ||
		strings.HasPrefix(line, ";") {
		return "", ""
	}
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		return "", ""
	}
	return strings.ToLower(strings.TrimSpace(line[:at])), strings.TrimSpace(line[at+1:])
}

// section returns the lines of a section as [from, to), without its first one. ok is false unless
// there's exactly one of that name.
func (s *storedTokens) section(name string) (from, to int, ok bool) {
	found := 0
	for i, line := range s.lines {
		if n, is := header(line); is {
			if found > 0 && to == 0 {
				to = i
			}
			if n == name {
				found++
				from, to = i+1, 0
			}
		}
	}
	if to == 0 {
		to = len(s.lines)
	}
	return from, to, found == 1
}

// find returns the section that has the token.
func (s *storedTokens) find(token string) (found storedToken, ok bool) {
	for _, line := range s.lines {
		if name, is := header(line); is {
			if x, one := s.read(name); one && x.token == token {
				return x, true
			}
		}
	}
	return storedToken{}, false
}

// read returns a section.
func (s *storedTokens) read(name string) (x storedToken, ok bool) {
	from, to, ok := s.section(name)
	if !ok {
		return storedToken{}, false
	}
	x.name = name
	for _, line := range s.lines[from:to] {
		switch key, value := entry(line); key {
		case keyToken:
			x.token = value
		case keyRefresh:
			x.refresh = value
		case keyExpires:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				x.expires = time.Unix(n, 0)
			}
		}
	}
	return x, true
}

// set replaces the values of a section. Values without a line get one at the section's end.
func (s *storedTokens) set(x storedToken) {
	values := map[string]string{keyToken: x.token, keyRefresh: x.refresh}
	if !x.expires.IsZero() {
		values[keyExpires] = strconv.FormatInt(x.expires.Unix(), 10)
	}
	from, to, _ := s.section(x.name)
	last := from
	var section []string
	for i, line := range s.lines[from:to] {
		key, _ := entry(line)
		value, ours := values[key]
		switch {
		case ours:
			line = key + " = " + value + "\n"
			delete(values, key)
		case key == keyExpires && x.expires.IsZero():
			continue
		}
		if strings.TrimSpace(line) != "" {
			last = from + i + 1
		}
		section = append(section, line)
	}
	for _, key := range []string{keyToken, keyRefresh, keyExpires} {
		if value, missing := values[key]; missing {
			section = slices.Insert(section, min(last-from, len(section)), key+" = "+value+"\n")
			last++
		}
	}
	s.lines = slices.Replace(s.lines, from, to, section...)
}
