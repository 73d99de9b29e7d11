package names

import "regexp"

// tokens are the forms of access tokens that their issuers document, or that secret scanners know:
//   - https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
//   - https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
//   - https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml for the other two
var tokens = []struct {
	issuer string
	form   *regexp.Regexp
}{
	{"Hugging Face", regexp.MustCompile(`\b(hf_|api_org_)[A-Za-z0-9]{34}\b`)},
	{"GitHub", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{82})\b`)},
	{"AWS", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z2-7]{16}\b`)},
	{"OpenAI or Anthropic", regexp.MustCompile(
		`\bsk-([A-Za-z0-9]{32,}|(proj|svcacct|admin|ant)-[A-Za-z0-9_-]{32,})`)},
}

// AccessToken returns who issues the first access token in a text, by its form, and the offset of the
// token in bytes. It returns "" if the text holds none that it knows.
func AccessToken(text string) (issuer string, at int) {
	for _, t := range tokens {
		if found := t.form.FindStringIndex(text); found != nil && (issuer == "" || found[0] < at) {
			issuer, at = t.issuer, found[0]
		}
	}
	return issuer, at
}
