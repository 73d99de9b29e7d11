package proof

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
)

// attested compares an attestation with the manifest, the manifest's own bytes included, and has every file hashed that the
// manifest lists, at all levels. So what the files are, what the manifest says and what the attestation says must be one.
func (v *verification) attested(ctx context.Context) error {
	if len(v.Attestations) == 0 {
		return nil
	}
	if v.DF11.Manifest == nil {
		return v.fault(KindFile, metadata.ManifestName, model.Invalidf(metadata.ManifestName, "in the attestation but not there"))
	}
	sum, err := smallSum(ctx, v.DF11, metadata.ManifestName)
	if err != nil {
		return err
	}
	a := attestationOf(v.Attestations, sum)
	builder, program := a.Builder()
	v.report.Attestation = &AttestationReport{
		Builder: builder, BuilderSHA256: program, Files: len(a.Subject), SourceFiles: len(v.DF11.Manifest.Source.Files),
		Signatures: a.Signatures,
	}
	for _, d := range a.Differences(v.DF11.Manifest.Statement(sum, "")) {
		if err := v.fault(KindFile, d.Name, model.Invalidf(d.Name, "%s", d.Fault)); err != nil {
			return err
		}
	}
	return v.costlyHashes(ctx)
}

// attestationOf chooses the statement that names the manifest. If none does, the last one, as the newest, says what differs.
func attestationOf(all []metadata.Attestation, manifestSHA256 string) *metadata.Attestation {
	names := func(a metadata.Attestation) bool { return a.Names(metadata.ManifestName, manifestSHA256) }
	if i := slices.IndexFunc(all, names); i >= 0 {
		return &all[i]
	}
	return &all[len(all)-1]
}
