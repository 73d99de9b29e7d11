package hubrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/names"
)

// A CardFault is a value of a model card's front matter that the Hub refuses.
type CardFault struct {
	Key   string
	At    int // index in a list, or -1
	Value any
	// Message is in the Hub's words, as its route validate-yaml answers.
	Message string
}

// Where names the value as the Hub does: "license" or "datasets[0]".
func (f CardFault) Where() string {
	if f.At < 0 {
		return f.Key
	}
	return fmt.Sprintf("%s[%d]", f.Key, f.At)
}

// A cardRule says which values a key may have. Each gives the message for a wrong one, or "".
type cardRule struct {
	list  bool // a list of values will do, too
	check func(value string) (wrong string)
}

// cardRules are the keys that a converted model's card may have, with the thread that shows the
// refusal, or the document that states the rule.
var cardRules = map[string]cardRule{
	// https://github.com/huggingface/transformers/issues/32212
	"base_model": {true, isRepo("Use a model id from https://hf.co/models.")},
	// https://huggingface.co/docs/hub/model-cards#specifying-a-base-model
	"base_model_relation": {false, oneOf(Relations)},
	// https://github.com/huggingface/autotrain-advanced/issues/648
	"datasets": {true, isRepo("If possible, use a dataset id from https://hf.co/datasets.")},
	// https://github.com/huggingface/huggingface_hub/issues/3862 and
	// https://github.com/espnet/espnet_model_zoo/pull/102
	"language": {true, isLanguage},
	// https://huggingface.co/docs/hub/model-cards#specifying-a-library
	"library_name": {false, anyText},
	// https://github.com/huggingface/huggingface_hub/issues/4218
	"license":      {true, oneOf(Licenses)},
	"license_link": {false, anyText},
	"license_name": {false, anyText},
	// https://www.npmjs.com/package/@huggingface/tasks, PIPELINE_TYPES
	"pipeline_tag": {false, oneOf(Tasks)},
	"tags":         {true, anyText},
}

// CheckCard returns the values of a card's front matter that the Hub refuses. card is decoded YAML;
// keys without a rule aren't checked.
func CheckCard(card map[string]any) (faults []CardFault) {
	for _, key := range slices.Sorted(maps.Keys(cardRules)) {
		value, there := card[key]
		if !there {
			continue
		}
		rule := cardRules[key]
		list, isList := value.([]any)
		if isList && !rule.list {
			faults = append(faults, CardFault{key, -1, value, fmt.Sprintf("%q must be a string", key)})
			continue
		}
		if !isList {
			list = []any{value}
		}
		for i, v := range list {
			f := CardFault{Key: key, At: i, Value: v}
			if !isList {
				f.At = -1
			}
			if f.Message = rule.wrong(v, f.Where()); f.Message != "" {
				faults = append(faults, f)
			}
		}
	}
	if card["license"] == "other" && card["license_name"] == nil {
		faults = append(faults, CardFault{"license_name", -1, nil,
			`"license_name" is required when license is "other"`})
	}
	return faults
}

// wrong returns the Hub's message about a value, or "".
func (r cardRule) wrong(value any, where string) string {
	text, ok := value.(string)
	switch {
	case !ok:
		return fmt.Sprintf("%q must be a string", where)
	case text == "": // https://github.com/huggingface/transformers/pull/25961
		return fmt.Sprintf("%q is not allowed to be empty", where)
	}
	if wrong := r.check(text); wrong != "" {
		return fmt.Sprintf("%q %s", where, wrong)
	}
	return ""
}

// CheckValue returns why the Hub refuses a value of a card's key, or "".
func CheckValue(key, value string) string {
	rule, known := cardRules[key]
	if !known {
		return ""
	}
	return rule.wrong(value, key)
}

func anyText(string) string { return "" }

func isRepo(advice string) func(string) string {
	return func(v string) string {
		if names.IsRepo(v) {
			return ""
		}
		return fmt.Sprintf("with value %q is not valid. %s", v, advice)
	}
}

func oneOf(list []string) func(string) string {
	return func(v string) string {
		if slices.Contains(list, v) {
			return ""
		}
		return "must be one of [" + strings.Join(list, ", ") + "]"
	}
}

// isLanguage accepts the form of a code of ISO 639-1, 639-2, or 639-3. It doesn't know which exist.
func isLanguage(v string) string {
	code := (len(v) == 2 || len(v) == 3) && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz") == ""
	if code || v == "code" || v == "multilingual" {
		return ""
	}
	return fmt.Sprintf("with value %q is not valid. It must be an ISO 639-1, 639-2 or 639-3 code "+
		"(two/three letters), or a special value like \"code\", \"multilingual\".", v)
}

// Relations are the values of base_model_relation.
var Relations = []string{"finetune", "adapter", "merge", "quantized"}

// Licenses are the license IDs that the Hub takes, as it listed them in May 2026:
// https://github.com/huggingface/huggingface_hub/issues/4218.
var Licenses = strings.Fields(`apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m
	bigscience-bloom-rail-1.0 bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause
	bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0
	cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0
	cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0
	cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1
	eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc h-research intel-research
	lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl openmdw-1.0 openrail++ osl-3.0
	postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license
	fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4
	grok2-community gemma unknown other`)

// Tasks are the values of pipeline_tag: PIPELINE_TYPES of @huggingface/tasks 0.21.54.
var Tasks = strings.Fields(`text-classification token-classification table-question-answering
	question-answering zero-shot-classification translation summarization feature-extraction
	text-generation fill-mask sentence-similarity text-to-speech text-to-audio
	automatic-speech-recognition audio-to-audio audio-classification audio-text-to-text
	voice-activity-detection depth-estimation image-classification object-detection
	image-segmentation text-to-image image-to-text image-to-image image-to-video
	unconditional-image-generation video-classification reinforcement-learning robotics
	tabular-classification tabular-regression tabular-to-text table-to-text multiple-choice
	text-ranking text-retrieval time-series-forecasting text-to-video image-text-to-text
	image-text-to-image image-text-to-video visual-question-answering document-question-answering
	zero-shot-image-classification graph-ml mask-generation zero-shot-object-detection text-to-3d
	image-to-3d image-feature-extraction video-text-to-text keypoint-detection
	visual-document-retrieval any-to-any video-to-video other`)
