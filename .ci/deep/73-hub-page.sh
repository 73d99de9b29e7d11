#!/usr/bin/env bash
# Runs the Hub's own code for model pages (npm's @huggingface/tasks: snippets and local apps) over the cards of results in every
# layout. Whatever appears there must be able to load the repo. Also tries packaging/huggingface, the registration of our library.
# Needs Node and npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
have node npm python3 || skip_rest 'there is no node with npm: the pages of the Hub were not tried'
cache=$CI_CACHE/hub-page-0.21.54
once "$cache" npm_install "$cache" @huggingface/tasks@0.21.54 js-yaml@4.1.1 \
  || skip_rest "npm does not give @huggingface/tasks: the pages of the Hub were not tried"
converter

python3 - "$work" <<'END'
import json, os, random, struct, sys
base = sys.argv[1]
rng = random.Random(1)

def weights(path, module):
    """Two blocks of one matrix each, in BF16."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    head, data = {}, b""
    for name in (module.replace("#", "0") + ".weight", module.replace("#", "1") + ".weight", "norm.weight"):
        shape = [64] if name == "norm.weight" else [64, 64]
        n = 64 ** len(shape)
        part = b"".join(struct.pack("<f", rng.gauss(0, 0.05))[2:] for _ in range(n))
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    header = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)

def source(name, module, files, task, library, tags, weight):
    folder = os.path.join(base, "sources", name)
    weights(os.path.join(folder, weight), module)
    with open(os.path.join(base, name + ".json"), "w") as f:
        json.dump({module.replace(".", r"\.").replace("#", r"\d+"): []}, f)
    files = files | {"README.md": f"---\nlicense: mit\nlibrary_name: {library}\npipeline_tag: {task}\ntags: {json.dumps(tags)}\n---\n"}
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w") as f:
            f.write(text)

llama = json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})
engines = ["transformers", "vllm", "text-generation-inference", "conversational"]
source("text", "model.layers.#.self_attn.q_proj", {"config.json": llama}, "text-generation", "transformers", engines, "model.safetensors")
source("vision", "model.language_model.layers.#.self_attn.q_proj", {"config.json": json.dumps({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl"})},
       "image-text-to-text", "transformers", engines, "model.safetensors")
source("embedding", "encoder.layer.#.attention.self.query", {"config.json": json.dumps({"architectures": ["BertModel"], "model_type": "bert"}), "modules.json": "[]"},
       "sentence-similarity", "sentence-transformers", ["sentence-transformers", "feature-extraction"], "model.safetensors")
pipeline = {"model_index.json": json.dumps({"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]}),
            "transformer/config.json": json.dumps({"_class_name": "FluxTransformer2DModel"})}
source("picture", "transformer_blocks.#.attn.to_q", pipeline, "text-to-image", "diffusers", ["diffusers", "flux", "lora"], "transformer/diffusion_pytorch_model.safetensors")
source("comfy", "double_blocks.#.img_attn.qkv", {}, "text-to-image", "diffusers", ["diffusers", "comfyui"], "flux1-dev.safetensors")
END

convert() { "$DF11_CONVERT" "$work/sources/$1" -o "$work/$1${2:+-single}-DF11" -q --pattern-dict "$work/$1.json" ${2:+--layout "$2"} >/dev/null; }
for source in text vision embedding picture comfy; do convert "$source"; done
convert text transformers-single
convert picture diffusers-single
cp .ci/deep/hubpage/check.mjs "$work/"
ln -s "$cache/node_modules" "$work/node_modules"
node "$work/check.mjs" packaging/huggingface "$work"/*-DF11
