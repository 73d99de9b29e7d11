package hub

import "math/rand/v2"

// newTransport checks the settings. It makes no request.
func newTransport(opt Settings) (*transport, error) {
	endpoint, err := parseEndpoint(opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := opt.complete(); err != nil {
		return nil, err
	}
	if opt.hasToken() && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		opt.Log.Warn("the token travels without encryption", "endpoint", endpoint.String())
	}
	who := opt.Token
	if opt.Publisher != nil {
		who = opt.Publisher.Resource
	}
	t := &transport{opt: opt, endpoint: endpoint, lanes: lanes{endpoint, fingerprint(who)}, jitter: rand.Float64}
	t.pauses = &pauses{clock: opt.Clock, onWait: opt.OnWait, waited: &t.stats.waited}
	t.login = &login{opt: &t.opt, hub: endpoint.String(), call: t.call, lock: make(lock, 1)}
	return t, nil
}
