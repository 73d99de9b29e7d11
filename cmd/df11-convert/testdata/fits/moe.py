"""Writes moe.txt: the tensors of mixtures of experts, as their checkpoints hold them.

    PYTHONPATH=transformers-5 v/bin/python moe.py [NAME…] > moe.txt

where transformers-5 holds transformers 5.23.0, and v torch 2.8.0, diffusers 0.39.0, and accelerate. Each class is built without
memory, and its tensors get the names and shapes that transformers gives them when it saves a checkpoint, unless the published ones
hold experts in one tensor. A model begins with a line "= NAME", then a word for what its numbers are from, then its config.json; each
other line has names of BF16 tensors ({0-3} stands for four) and their shape.
"""
import itertools
import json
import re
import sys
import warnings

import diffusers
import torch
import transformers
from accelerate import init_empty_weights
from transformers.core_model_loading import revert_weight_conversion

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

CLASS = "class"  # the class's own config in transformers 5.23 or diffusers 0.39
COPY = "copy"  # the published config, as the code of other projects repeats it
MEMORY = "memory"  # the published config, which wasn't looked up; the sum of the weights is the published one

# name, class, what the numbers are from, fields of the config that differ from the class's (text_config's under "text"), and whether
# the checkpoint holds experts as the class does
MODELS = [
    ("Qwen/Qwen3-30B-A3B", "Qwen3MoeForCausalLM", MEMORY, dict(vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, moe_intermediate_size=768), 0),
    ("Qwen/Qwen3-235B-A22B", "Qwen3MoeForCausalLM", COPY, dict(vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=94, num_attention_heads=64, num_key_value_heads=4, head_dim=128, num_experts=128, moe_intermediate_size=1536), 0),
    ("Qwen/Qwen3.5-35B-A3B, Qwen3.6-35B-A3B", "Qwen3_5MoeForConditionalGeneration", CLASS, {}, 1),
    ("Qwen/Qwen3-Next-80B-A3B", "Qwen3NextForCausalLM", CLASS, {}, 0),
    ("Qwen/Qwen3-VL-30B-A3B", "Qwen3VLMoeForConditionalGeneration", COPY, dict(text=dict(vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, moe_intermediate_size=768)), 0),
    ("Qwen/Qwen3-Omni-30B-A3B (thinker)", "Qwen3OmniMoeThinkerForConditionalGeneration", MEMORY, dict(text=dict(vocab_size=152064, hidden_size=2048, intermediate_size=768, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, moe_intermediate_size=768)), 0),
    ("zai-org/GLM-4.5-Air", "Glm4MoeForCausalLM", CLASS, dict(vocab_size=151552, hidden_size=4096, intermediate_size=10944, num_hidden_layers=46, num_attention_heads=96, num_key_value_heads=8, head_dim=128, n_routed_experts=128, moe_intermediate_size=1408, first_k_dense_replace=1), 0),
    ("zai-org/GLM-4.7", "Glm4MoeForCausalLM", COPY, dict(vocab_size=151552, hidden_size=5120, intermediate_size=12288, num_hidden_layers=92, num_attention_heads=96, num_key_value_heads=8, head_dim=128, n_routed_experts=160, moe_intermediate_size=1536, first_k_dense_replace=3), 0),
    ("zai-org/GLM-4.7-Flash", "Glm4MoeLiteForCausalLM", CLASS, {}, 0),
    ("zai-org/GLM-5", "GlmMoeDsaForCausalLM", CLASS, {}, 0),
    ("deepseek-ai/DeepSeek-V2", "DeepseekV2ForCausalLM", MEMORY, dict(vocab_size=102400, hidden_size=5120, intermediate_size=12288, num_hidden_layers=60, num_attention_heads=128, num_key_value_heads=128, n_routed_experts=160, moe_intermediate_size=1536, n_shared_experts=2, first_k_dense_replace=1, q_lora_rank=1536, kv_lora_rank=512), 0),
    ("deepseek-ai/DeepSeek-V3 in BF16", "DeepseekV3ForCausalLM", CLASS, {}, 0),
    ("deepseek-ai/DeepSeek-V3.2 in BF16", "DeepseekV32ForCausalLM", CLASS, {}, 0),
    ("deepseek-ai/DeepSeek-V4 in BF16", "DeepseekV4ForCausalLM", CLASS, {}, 0),
    ("moonshotai/Kimi-K2 in BF16", "DeepseekV3ForCausalLM", COPY, dict(vocab_size=163840, hidden_size=7168, intermediate_size=18432, num_hidden_layers=61, num_attention_heads=64, num_key_value_heads=64, n_routed_experts=384, moe_intermediate_size=2048, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=1536, kv_lora_rank=512, n_group=1, topk_group=1), 0),
    ("MiniMaxAI/MiniMax-M2 in BF16", "MiniMaxM2ForCausalLM", CLASS, {}, 0),
    ("MiniMaxAI/MiniMax-M3", "MiniMaxM3SparseForConditionalGeneration", CLASS, {}, 0),
    ("google/gemma-4-26B-A4B", "Gemma4ForConditionalGeneration", COPY, dict(text=dict(vocab_size=262144, hidden_size=2816, intermediate_size=2112, num_hidden_layers=30, num_attention_heads=16, num_key_value_heads=8, head_dim=256, global_head_dim=512, num_global_key_value_heads=2, attention_k_eq_v=True, enable_moe_block=True, num_experts=128, top_k_experts=8, moe_intermediate_size=704, hidden_size_per_layer_input=0, num_kv_shared_layers=0)), 1),
    ("meta-llama/Llama-4-Scout-17B-16E", "Llama4ForConditionalGeneration", CLASS, {}, 1),
    ("meta-llama/Llama-4-Maverick-17B-128E", "Llama4ForConditionalGeneration", COPY, dict(text=dict(num_local_experts=128, interleave_moe_layer_step=2)), 1),
    ("openai/gpt-oss-20b in BF16", "GptOssForCausalLM", MEMORY, dict(num_hidden_layers=24, num_local_experts=32), 1),
    ("openai/gpt-oss-120b in BF16", "GptOssForCausalLM", CLASS, {}, 1),
    ("mistralai/Mixtral-8x7B-v0.1", "MixtralForCausalLM", CLASS, {}, 0),
    ("mistralai/Mixtral-8x22B-v0.1", "MixtralForCausalLM", COPY, dict(vocab_size=32000, hidden_size=6144, intermediate_size=16384, num_hidden_layers=56, num_attention_heads=48, num_key_value_heads=8), 0),
    ("mistralai/Mistral-Small-4", "Mistral4ForCausalLM", CLASS, {}, 0),
    ("mistralai/Mistral-Large-4", "MistralLarge4ForConditionalGeneration", CLASS, {}, 0),
    ("allenai/OLMoE-1B-7B", "OlmoeForCausalLM", COPY, dict(hidden_size=2048, intermediate_size=1024, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16, num_experts=64), 0),
    ("baidu/ERNIE-4.5-21B-A3B", "Ernie4_5_MoeForCausalLM", CLASS, {}, 0),
    ("ibm-granite/granite-4.0-h-small", "GraniteMoeHybridForCausalLM", COPY, dict(vocab_size=100352, hidden_size=4096, intermediate_size=768, shared_intermediate_size=1536, num_hidden_layers=40, num_attention_heads=32, num_key_value_heads=8, num_local_experts=72, mamba_n_heads=128, mamba_d_head=64, mamba_d_state=128, tie_word_embeddings=True, layer_types=["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]), 0),
    ("nvidia/Nemotron-3-Nano-30B-A3B", "NemotronHForCausalLM", COPY, dict(vocab_size=131072, hidden_size=2688, intermediate_size=1856, num_hidden_layers=52, num_attention_heads=32, num_key_value_heads=2, head_dim=128, n_routed_experts=128, moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, mamba_num_heads=64, mamba_head_dim=64, n_groups=8, ssm_state_size=128, hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"), 0),
    ("tencent/Hunyuan-A13B", "HunYuanMoEV1ForCausalLM", COPY, dict(vocab_size=128167, hidden_size=4096, intermediate_size=3072, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, head_dim=128, num_experts=64, moe_topk=8), 0),
    ("rednote-hilab/dots.llm1", "Dots1ForCausalLM", COPY, dict(vocab_size=152064, hidden_size=4096, intermediate_size=10944, num_hidden_layers=62, num_attention_heads=32, num_key_value_heads=32, n_routed_experts=128, moe_intermediate_size=1408, n_shared_experts=2, first_k_dense_replace=1), 0),
    ("LiquidAI/LFM2-8B-A1B", "Lfm2MoeForCausalLM", COPY, dict(layer_types=["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)], num_hidden_layers=24), 0),
    ("LGAI-EXAONE/K-EXAONE-236B-A23B", "ExaoneMoeForCausalLM", COPY, dict(vocab_size=153600, hidden_size=6144, intermediate_size=18432, num_hidden_layers=48, num_attention_heads=64, num_key_value_heads=8, head_dim=128, num_experts=128, moe_intermediate_size=2048, num_shared_experts=1, first_k_dense_replace=1), 0),
    ("microsoft/Phi-3.5-MoE", "PhimoeForCausalLM", COPY, dict(vocab_size=32064, hidden_size=4096, intermediate_size=6400, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, num_local_experts=16, attention_bias=True, lm_head_bias=True), 0),
    ("stepfun-ai/Step-3.7", "Step3p7ForConditionalGeneration", CLASS, {}, 0),
    ("upstage/Solar-Open-100B", "SolarOpenForCausalLM", CLASS, {}, 0),
    ("tencent/HY-3", "HYV3ForCausalLM", CLASS, {}, 0),
    ("HiDream-ai/HiDream-I1 (transformer)", "HiDreamImageTransformer2DModel", MEMORY, dict(patch_size=2, in_channels=16, out_channels=16, num_layers=16, num_single_layers=32, attention_head_dim=128, num_attention_heads=20, caption_channels=[4096, 4096], text_emb_dim=2048, num_routed_experts=4, num_activated_experts=2, axes_dims_rope=(64, 32, 32), max_resolution=(128, 128), llama_layers=list(range(32)) + [31] * 16), 1),
    ("NucleusAI/Nucleus-Image (transformer)", "NucleusMoEImageTransformer2DModel", CLASS, {}, 1),
]


def build(name, fields):
    """The model without memory, and its config.json."""
    if hasattr(diffusers, name):
        with init_empty_weights():
            model = getattr(diffusers, name)(**fields)
        return model, {"_class_name": name}
    cls = getattr(transformers, name)
    text = fields.pop("text", None)
    config = cls.config_class(**fields)
    if text is not None:
        inner = type(config.get_text_config())(**text)
        config = cls.config_class(text_config=inner.to_dict(), **fields)
    with torch.device("meta"):
        model = cls(config)
    stated = {"architectures": [name], "model_type": config.model_type, "tie_word_embeddings": getattr(config, "tie_word_embeddings", False)}
    counts = {k: v for k, v in config.get_text_config().to_dict().items() if re.search(
        "num_hidden_layers|num_experts$|num_local_experts|n_routed_experts|moe_num_experts|num_attention_heads|num_key_value_heads|"
        "head_dim|hidden_size$|max_position|kv_lora_rank|sliding_window$|layer_types|layers_block_type", k) and v is not None
        or isinstance(v, bool) and re.search("bias|qk_norm|enable_", k)}  # decides which tensors there are
    return model, stated | ({"text_config": counts} if config.get_text_config() is not config else counts)


def ranges(numbers):
    """{0-3,5} of numbers, or the number."""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return text if len(numbers) == 1 else "{" + text + "}"


def lists(tuples):
    """Lists of ranges that stand for a set of tuples."""
    if tuples == {()}:
        return [[]]
    rest = {}
    for first, group in itertools.groupby(sorted(tuples), lambda t: t[0]):
        rest.setdefault(frozenset(t[1:] for t in group), []).append(first)
    return [[ranges(firsts), *tail] for tails, firsts in rest.items() for tail in lists(set(tails))]


def main():
    for name, cls, source, fields, as_it_is in MODELS:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        model, config = build(cls, fields)
        tied = set(getattr(model, "_tied_weights_keys", None) or ()) if config.get("tie_word_embeddings") else set()
        state = {k: v for k, v in model.state_dict().items() if k not in tied}
        if not as_it_is:
            state = revert_weight_conversion(model, state)
        kinds = {}
        for key, t in state.items():
            shape = "x".join(map(str, t.shape)) or "1"
            kinds.setdefault((re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)", "#", key), shape), set()).add(tuple(int(n) for n in re.findall(r"(?:(?<=\.)|^)\d+(?=\.|$)", key)))
        print(f"= {name}\n# {source}\n# {json.dumps(config)}")
        for (template, shape), tuples in kinds.items():
            for numbers in lists(tuples):
                numbers = iter(numbers)
                print(re.sub("#", lambda _: next(numbers), template), shape)
        print(name, sum(t.numel() for t in state.values()) / 1e9, file=sys.stderr)


main()
