package hubtest

import (
	"net/http"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseCard returns the YAML front matter of a model card, or nil.
func parseCard(readme string) (card map[string]any, err error) {
	text := strings.ReplaceAll(readme, "\r\n", "\n")
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if front, _, ok := strings.Cut("\n"+rest, "\n---"); ok {
			err = yaml.Unmarshal([]byte(front), &card)
		}
	}
	return card, err
}

// checkCommittedCard refuses a commit that adds a card with errors.
func checkCommittedCard(now, before File) error {
	if now.content == before.content {
		return nil
	}
	if wrong := cardFaults(now.content); len(wrong) > 0 {
		return ruleCard.refuse(strings.Join(wrong, "\n- "))
	}
	return nil
}

func validateYAML(_ *call, q struct{ Content string }) (any, error) {
	errors, status := []map[string]any{}, http.StatusOK
	for _, m := range cardFaults(q.Content) {
		errors, status = append(errors, map[string]any{"message": m}), ruleCard.Status
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, status, map[string]any{"errors": errors, "warnings": []any{}})
	}), nil
}
