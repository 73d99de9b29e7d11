package hubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseCard returns the YAML front matter of a model card; nil when it has none.
func parseCard(readme string) (map[string]any, error) {
	text := strings.ReplaceAll(readme, "\r\n", "\n")
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "\ufeff"), "---\n")
	if !ok {
		return nil, nil
	}
	front, _, ok := strings.Cut("\n"+rest, "\n---")
	if !ok {
		return nil, nil
	}
	var card map[string]any
	if err := yaml.Unmarshal([]byte(front), &card); err != nil {
		return nil, err
	}
	return card, nil
}

// checkCard applies the hub's rules for the metadata of a converted model.
func checkCard(readme string) (errs, warnings []string) {
	card, err := parseCard(readme)
	if err != nil {
		return []string{"Invalid YAML in README.md: " + err.Error()}, nil
	}
	if len(card) == 0 {
		return nil, []string{"empty or missing yaml metadata in repo card"}
	}
	for _, k := range []string{"license", "license_name", "license_link", "library_name", "pipeline_tag", "base_model_relation"} {
		if v, ok := card[k]; ok && !isText(v) && !(k == "license" && isTextList(v)) {
			errs = append(errs, fmt.Sprintf("%q must be a string", k))
		}
	}
	for _, k := range []string{"tags", "language", "datasets", "base_model"} {
		if v, ok := card[k]; ok && !isTextList(v) && !(k != "tags" && isText(v)) {
			errs = append(errs, fmt.Sprintf("%q must be a list of strings", k))
		}
	}
	if card["license"] == "other" && card["license_name"] == nil {
		errs = append(errs, `"license_name" is required when license is "other"`)
	}
	errs = append(errs, checkBase(card)...)
	if _, ok := card["license"]; !ok {
		warnings = append(warnings, "no license given in the repo card")
	}
	return errs, warnings
}

func checkBase(card map[string]any) (errs []string) {
	for _, b := range stringsOf(card["base_model"]) {
		if strings.Count(b, "/") > 1 || strings.ContainsAny(b, " :") {
			errs = append(errs, fmt.Sprintf("%q is not a valid model id for base_model", b))
		}
	}
	if rel, ok := card["base_model_relation"].(string); ok && !slices.Contains([]string{"quantized", "finetune", "adapter", "merge"}, rel) {
		errs = append(errs, fmt.Sprintf("base_model_relation must be one of [adapter, merge, quantized, finetune], not %q", rel))
	}
	return errs
}

// stringsOf reads a YAML value that may be a string or a list of strings.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if t, ok := e.(string); ok {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isTextList(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool { return !isText(e) })
}

// checkCommittedCard refuses a commit that brings in a card with errors.
func checkCommittedCard(now, before File) error {
	if now.content == "" || now.content == before.content {
		return nil
	}
	if errs, _ := checkCard(now.content); len(errs) > 0 {
		return fail(http.StatusBadRequest, "Invalid metadata in README.md.\n- %s", strings.Join(errs, "\n- "))
	}
	return nil
}

func validateYAML(_ *call, q struct{ Content string }) (any, error) {
	errs, warnings := checkCard(q.Content)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusOK
		if len(errs) > 0 {
			status = http.StatusBadRequest
		}
		writeJSON(w, status, map[string]any{"errors": messages(errs), "warnings": messages(warnings)})
	}), nil
}

func messages(list []string) []map[string]any {
	out := []map[string]any{}
	for _, m := range list {
		out = append(out, map[string]any{"message": m})
	}
	return out
}
