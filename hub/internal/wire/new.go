package wire

import "math/rand/v2"

// New checks the settings. It makes no request.
func New(opt Settings) (*Transport, error) {
	endpoint, err := parseEndpoint(opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := opt.complete(); err != nil {
		return nil, err
	}
	if opt.HasToken() && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		opt.Log.Warn("the token travels without encryption", "endpoint", endpoint.String())
	}
	who := opt.Token
	if opt.Publisher != nil {
		who = opt.Publisher.Resource
	}
	t := &Transport{Opt: opt, Endpoint: endpoint, caller: fingerprint(who), Jitter: rand.Float64}
	t.pauses = &pauses{clock: opt.Clock, onWait: opt.OnWait}
	t.login = &login{opt: &t.Opt, hub: endpoint.String(), call: t.Call, lock: make(Lock, 1)}
	return t, nil
}
