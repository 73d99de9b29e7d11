package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/smallfile"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/pipeline"
)

// attestFlags ask for a statement about the result.
type attestFlags struct{ file, by string }

func (f *attestFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.file, "attestation", "", "write an in-toto statement of all files of the result to this `file`, for a signer")
	p.StringVar(&f.by, "attested-by", "", "GitHub `repository`, owner/name, whose workflow signs that statement; the card names it")
	group(p, groupPublish, "attestation", "attested-by")
}

func (f *attestFlags) check(parts *partFlags) error {
	switch {
	case f.by != "" && f.file == "":
		return usagef("--attested-by needs --attestation")
	case f.file != "" && parts.which != "":
		return usagef("--attestation is about a complete model: give it to the run with --finish, not to those with --shard")
	}
	return validRepo("--attested-by", f.by) // GitHub's names are of the same form
}

// apply puts the flags into the options. The program is hashed before the work, as long as it is sure to be what runs.
func (f *attestFlags) apply(ctx context.Context, opt *pipeline.Options) (err error) {
	if f.file == "" {
		return nil
	}
	opt.AttestedBy = f.by
	if opt.Program, err = programSHA256(ctx); err != nil {
		return fmt.Errorf("--attestation: sha256 of this program: %w", err)
	}
	return nil
}

func programSHA256(ctx context.Context) (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := smallfile.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return streams.SHA256(ctx, file)
}

// write writes the statement about a finished conversion.
func (f *attestFlags) write(r *pipeline.Report) error {
	if f.file == "" {
		return nil
	}
	b, err := r.Statement.Marshal()
	if err == nil {
		err = atomicfile.WriteFile(f.file, b)
	}
	if err != nil {
		return hinted{fmt.Errorf("--attestation: %w", err), "the model is complete; the same command writes the statement alone"}
	}
	return nil
}

// readAttestations reads a file of attestations that the user names.
func readAttestations(file string) ([]metadata.Attestation, error) {
	if file == "" {
		return nil, nil
	}
	b, err := smallfile.ReadInput(file, metadata.MaxAttestationBytes)
	if err != nil {
		return nil, fmt.Errorf("--attestation: %w", err)
	}
	as, err := metadata.ParseAttestations(b)
	if err != nil {
		return nil, fmt.Errorf("--attestation %s: %w", file, err)
	}
	return as, nil
}

// attestationFacts say with what the files were compared, which of them are as it says, and that nobody has looked at the
// signature.
func attestationFacts(r *proof.Report) []fact {
	a, says := r.Attestation, ""
	if others := r.Listed - r.Hashed; r.OK && others > 0 { // a card that was edited is no fault, but not what was attested
		says = fmt.Sprintf(": all but %s that no loader reads are as it says", count(others, "file"))
	} else if r.OK {
		says = ": all are as it says"
	}
	of := fmt.Sprintf("of %s and %s of the original, made by %s with sha256 %s", count(a.Files, "file"),
		count(a.SourceFiles, "weight file"), a.Builder, a.BuilderSHA256)
	signature := "none: anybody could have written this attestation"
	if a.Signatures > 0 {
		signature = "not verified here; gh attestation verify df11-manifest.json --bundle FILE --owner OWNER tells who signed"
	}
	return []fact{{"attestation", of + says}, {"signature", signature}}
}
