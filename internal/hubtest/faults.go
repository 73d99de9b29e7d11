package hubtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Fault is a rule that spoils the answers to some requests. A request counts for every rule that
// it matches. The first rule whose turn it is acts.
type Fault struct {
	// Name labels the log. If Action is nil, it picks host, method, path, and action from the table
	// of named faults.
	Name string

	Host   Host   // "" matches both
	Method string // "" matches all; "GET" does not match HEAD
	Path   string // each * stands for any text; "" matches all

	Nth         int     // first match to act on, counted from 1; 0 is 1
	Times       int     // how many matches to act on; 0 is once, Always is no end
	Probability float64 // when set, each match is acted on with this chance
	Seed        uint64  // of the chance

	Action Action
}

// Always is the value of Fault.Times for a fault that does not end.
const Always = -1

// An Action answers a request instead of the server.
type Action func(x *Exchange)

// An Exchange is one request that an action handles.
type Exchange struct {
	http.ResponseWriter
	Request *http.Request
	Server  *Server
	next    http.Handler
}

// Unwrap lets http.ResponseController reach the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Next lets the server answer, into w.
func (x *Exchange) Next(w http.ResponseWriter) { x.next.ServeHTTP(w, x.Request) }

// faultRule is a Fault with its counters.
type faultRule struct {
	Fault
	paths       *regexp.Regexp
	seen, acted int
	rng         *rand.Rand
}

// faultRules are the current rules.
type faultRules struct {
	mu    sync.Mutex
	rules []*faultRule
}

// Inject adds fault rules, which last until they're used up or ClearFaults is called. It panics for
// a name that isn't in the table.
func (fs *faultRules) Inject(faults ...Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range faults {
		if f.Action == nil {
			named, ok := faultTable[f.Name]
			if !ok {
				panic("hubtest: no fault named " + f.Name)
			}
			f.Host, f.Method, f.Path = cmp.Or(f.Host, named.host), cmp.Or(f.Method,
				named.method), cmp.Or(f.Path, named.path)
			f.Action = named.action
		}
		rng := rand.New(rand.NewPCG(f.Seed, 0x68756274657374))
		fs.rules = append(fs.rules, &faultRule{Fault: f, paths: pathPattern(f.Path), rng: rng})
	}
}

// ClearFaults removes all rules.
func (fs *faultRules) ClearFaults() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.rules = nil
}

// FaultsActed returns how often the rules of that name fired.
func (fs *faultRules) FaultsActed(name string) int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := 0
	for _, r := range fs.rules {
		if r.Name == name {
			n += r.acted
		}
	}
	return n
}

// ParseFault reads NAME, NAME:N (the first N matches), or NAME:always.
func ParseFault(spec string) (Fault, error) {
	name, arg, found := strings.Cut(spec, ":")
	f := Fault{Name: name}
	if _, ok := faultTable[name]; !ok {
		return f, fmt.Errorf("unknown fault %q; known are %s", name,
			strings.Join(FaultNames(), ", "))
	}
	var err error
	switch {
	case !found:
	case arg == "always":
		f.Times = Always
	default:
		if f.Times, err = strconv.Atoi(arg); err != nil || f.Times < 1 {
			return f, fmt.Errorf("fault %s: %q is not a count", name, arg)
		}
	}
	return f, nil
}

// pick counts the request for every rule and returns the rule that acts, or nil.
func (fs *faultRules) pick(host Host, r *http.Request) *faultRule {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var chosen *faultRule
	for _, rule := range fs.rules {
		matches := (rule.Host == "" || rule.Host == host) &&
			(rule.Method == "" || rule.Method == r.Method) &&
			rule.paths.MatchString(r.URL.Path)
		if matches && rule.fires() && chosen == nil {
			rule.acted++
			chosen = rule
		}
	}
	return chosen
}

// fires counts one match and reports whether it's the rule's turn.
func (f *faultRule) fires() bool {
	f.seen++
	switch {
	case f.seen < f.Nth:
		return false
	case f.Times != Always && f.acted >= max(f.Times, 1):
		return false
	}
	return f.Probability == 0 || f.rng.Float64() < f.Probability
}
