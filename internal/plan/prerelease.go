package plan

// PrereleaseOutputs returns the name and the digest that programs from before the first release
// gave to an output file of the same bytes, by the path that it has now. They named the remainder
// as the official compressor does.
func (p *Plan) PrereleaseOutputs() map[string]OutputID {
	all := map[string]OutputID{}
	for i, f := range p.OfficialRemainder().RemainderFiles {
		if now := p.RemainderFiles[i].Path; now != f.Path && !p.Layout.Single() {
			all[now] = OutputID{f.Path, p.outputDigest(f)}
		}
	}
	return all
}

// An OutputID is the path of an output file, and its digest.
type OutputID struct{ Path, Digest string }
