package hubtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseCard returns the YAML front matter of a model card; nil when it has none.
func parseCard(readme string) (card map[string]any, err error) {
	text := strings.ReplaceAll(readme, "\r\n", "\n")
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if front, _, ok := strings.Cut("\n"+rest, "\n---"); ok {
			err = yaml.Unmarshal([]byte(front), &card)
		}
	}
	return card, err
}

// What the metadata of a converted model may be: text, a list of texts, or either.
const (
	cardText = 1 << iota
	cardList
)

var cardKinds = map[string]int{
	"license": cardText | cardList, "license_name": cardText, "license_link": cardText, "library_name": cardText, "pipeline_tag": cardText,
	"base_model_relation": cardText, "tags": cardList, "language": cardText | cardList, "datasets": cardText | cardList, "base_model": cardText | cardList,
}

// checkCard applies a few of the hub's rules, and returns what is wrong.
func checkCard(readme string) (wrong []string) {
	card, err := parseCard(readme)
	if err != nil {
		return []string{"Invalid YAML in README.md: " + err.Error()}
	}
	for _, key := range slices.Sorted(maps.Keys(cardKinds)) {
		if v, ok := card[key]; ok && kindOf(v)&cardKinds[key] == 0 {
			wrong = append(wrong, fmt.Sprintf("%q is of a wrong type", key))
		}
	}
	if card["license"] == "other" && card["license_name"] == nil {
		wrong = append(wrong, `"license_name" is required when license is "other"`)
	}
	return wrong
}

func kindOf(v any) int {
	list, ok := v.([]any)
	switch _, text := v.(string); {
	case text:
		return cardText
	case ok && !slices.ContainsFunc(list, func(e any) bool { return kindOf(e) != cardText }):
		return cardList
	}
	return 0
}

// checkCommittedCard refuses a commit that brings in a card with errors.
func checkCommittedCard(now, before File) error {
	if now.content == before.content {
		return nil
	}
	if wrong := checkCard(now.content); len(wrong) > 0 {
		return fail(http.StatusBadRequest, "Invalid metadata in README.md.\n- %s", strings.Join(wrong, "\n- "))
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
