package reader

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
)

// IsSafetensors reports whether a file is a safetensors file, by its name.
func IsSafetensors(name string) bool { return path.Ext(name) == ".safetensors" }

// Loads reports whether a loader that is given the DF11 model in a folder, or "" for the root,
// reads a file as weights. The official loader reads every safetensors file there, whatever an
// index says.
func Loads(dir, name string) bool {
	return IsSafetensors(name) && path.Dir(name) == path.Clean(dir)
}

// IsWeightName reports whether a path can be that of a source's weight file: a safe path of a
// .safetensors file, without hidden files or folders.
func IsWeightName(p string) bool {
	return names.IsSafe(p) && !isHidden(p) && IsSafetensors(p)
}

// shardNumber matches the end of a shard's name: -00001-of-00002.
var shardNumber = regexp.MustCompile(`-(\d+)-of-(\d+)$`)

// HasStem reports whether a file's name without its extension is stem, or stem with the number of a
// shard.
func HasStem(name, stem string) bool { return shardNumber.ReplaceAllString(name, "") == stem }

// IsUsual reports whether libraries find a weight file, or a shard, by its name alone.
func IsUsual(weightFile string) bool {
	name := strings.TrimSuffix(path.Base(weightFile), ".safetensors")
	return HasStem(name, FamilyOf(weightFile).Stem())
}

// A Shard is one of the files over which a model's weights are divided.
type Shard struct {
	Stem   string // start of the shards' names, with the folder
	Of     string // number of the shards, with leading zeros
	number string // with as many digits
}

// ShardOf returns a file as a shard, and false if its name isn't one of a shard.
func ShardOf(p string) (s Shard, ok bool) {
	name := strings.TrimSuffix(p, ".safetensors")
	m := shardNumber.FindStringSubmatch(name)
	if m == nil || !IsSafetensors(p) {
		return Shard{}, false
	}
	return Shard{strings.TrimSuffix(name, m[0]), m[2], m[1]}, true
}

// Number returns the path of the i-th shard of the same set.
func (s Shard) Number(i int) string {
	return fmt.Sprintf("%s-%0*d-of-%s.safetensors", s.Stem, len(s.number), i, s.Of)
}

// FamilyOf returns the family of a weight file by its name: model.safetensors, or a variant such as
// model.fp16.safetensors, is of transformers. A file whose name no library uses is a model of its
// own, as ComfyUI keeps them.
func FamilyOf(weightFile string) catalog.Layout {
	name := strings.TrimSuffix(path.Base(weightFile), ".safetensors")
	for _, family := range []catalog.Layout{catalog.Transformers, catalog.Diffusers} {
		if HasStem(name, family.Stem()) || strings.HasPrefix(name, family.Stem()+".") {
			return family
		}
	}
	return catalog.ComfyUI
}

// loadedName matches the names by which libraries find the weights of a folder, or their index.
// Some systems ignore case.
var loadedName = regexp.MustCompile(
	`(?i)^(model|pytorch_model|diffusion_pytorch_model|flax_model|diffusion_flax_model|tf_model)[.-]`)

// variantName matches the names in loadedName that libraries write: with a variant, as the number
// of a shard, and in the formats of the frameworks.
var variantName = regexp.MustCompile(`(?i)^(model|pytorch_model|diffusion_pytorch_model|flax_model|` +
	`diffusion_flax_model|tf_model)(\.(fp16|bf16|fp32|fp8|ema|non_ema))?(-\d+-of-\d+)?` +
	`(\.(fp16|bf16|fp32|fp8|ema|non_ema))?\.(safetensors|bin|pt|h5|msgpack)` +
	`(\.index(\.(fp16|bf16|fp32|fp8|ema|non_ema))?\.json)?$`)

// isVariant reports whether a library writes a model's weights, or their index, under a name. What
// else [IsLoaded] finds may have a private name.
func isVariant(p string) bool { return variantName.MatchString(path.Base(p)) }

// IsLoaded reports whether a library may read a file as the weights of its folder, in whatever
// format, or as their index.
func IsLoaded(p string) bool {
	base := strings.ToLower(path.Base(p))
	return loadedName.MatchString(base) && (isWeights(base) || index.MatchString(base))
}

// adapter matches the files of an adapter, as PEFT and diffusers name them.
var adapter = regexp.MustCompile(
	`^(adapter_config\.json|(adapter_model|pytorch_lora_weights)\.(safetensors|bin))$`)

// IsAdapter reports whether a file is part of an adapter, by its name.
func IsAdapter(name string) bool { return adapter.MatchString(path.Base(name)) }

// notices are the names under which models publish their license terms, in lower case. A file with
// another name may be anything, such as a license key, and stays in a folder.
var notices = setOf([]string{
	"license",        // Qwen/Qwen3-8B; LICENSE.txt: meta-llama/Llama-2-7b-hf
	"licence",        // as British English spells it
	"license-model",  // deepseek-ai/DeepSeek-V3-Base
	"license-code",   // deepseek-ai/DeepSeek-V3-Base
	"notice",         // Qwen/Qwen-7B-Chat; NOTICE.md: microsoft/phi-2
	"use_policy",     // USE_POLICY.md: meta-llama/Llama-3.1-8B
	"copying",        // as GNU names the GPL
	"copying.lesser", // and the LGPL
})

// noticeEnds are the ends of these names.
var noticeEnds = []string{"", ".md", ".txt", ".rst", ".pdf"}

// IsNotice reports whether a file carries license terms, by its whole name.
func IsNotice(name string) bool {
	base := strings.ToLower(path.Base(name))
	return slices.ContainsFunc(noticeEnds, func(end string) bool {
		stem, ok := strings.CutSuffix(base, end)
		return ok && notices[stem]
	})
}
