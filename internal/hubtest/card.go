package hubtest

import (
	"fmt"
	"net/http"
	"slices"
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

// cardKeys are what a converted model's card may contain. Each is a string or a list of strings.
var cardKeys = []string{"base_model", "base_model_relation", "datasets", "language", "library_name",
	"license", "license_link",
	"license_name", "pipeline_tag", "tags"}

// checkCard applies a few of the hub's rules, and returns what's wrong.
func checkCard(readme string) (wrong []string) {
	card, err := parseCard(readme)
	if err != nil {
		return []string{"Invalid YAML in README.md: " + err.Error()}
	}
	for _, key := range cardKeys {
		if v, ok := card[key]; ok && !isText(v) {
			wrong = append(wrong, fmt.Sprintf("%q is of a wrong type", key))
		}
	}
	if card["license"] == "other" && card["license_name"] == nil {
		wrong = append(wrong, `"license_name" is required when license is "other"`)
	}
	return wrong
}

func isText(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	return !slices.ContainsFunc(list, func(e any) bool { _, text := e.(string); return !text })
}

// checkCommittedCard refuses a commit that adds a card with errors.
func checkCommittedCard(now, before File) error {
	if now.content == before.content {
		return nil
	}
	if wrong := checkCard(now.content); len(wrong) > 0 {
		return fail(http.StatusBadRequest, "Invalid metadata in README.md.\n- %s",
			strings.Join(wrong, "\n- "))
	}
	return nil
}

func validateYAML(_ *call, q struct{ Content string }) (any, error) {
	errors, status := []map[string]any{}, http.StatusOK
	for _, m := range checkCard(q.Content) {
		errors, status = append(errors, map[string]any{"message": m}), http.StatusBadRequest
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, status, map[string]any{"errors": errors, "warnings": []any{}})
	}), nil
}
