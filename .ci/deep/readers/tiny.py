"""Tiny models of the real classes, with random BF16 weights, saved as their libraries save them."""
import json

import diffusers
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

WORDS = 512

# Fields of configs that make a model small, where a config has them.
SMALL = dict(
    vocab_size=WORDS, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    head_dim=16, max_position_embeddings=256, max_window_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    num_experts=4, num_local_experts=4, n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=4, moe_intermediate_size=32,
    shared_expert_intermediate_size=32, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1,
    kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, sliding_window=64,
    dropout=0.0, attention_dropout=0.0, hidden_dropout=0.0, resid_pdrop=0.0, embd_pdrop=0.0,
)

# What single classes want beside that, by model_type.
CONFIGS = {
    "deepseek_v3": dict(head_dim=8),  # it is qk_rope_head_dim
    "falcon_h1": dict(mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=32),
    "granitemoehybrid": dict(layer_types=["mamba", "attention", "mamba"], mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_chunk_size=32),
    "hunyuan_v1_moe": dict(moe_topk=4),
    "phimoe": dict(num_local_experts=2),
    "qwen3_next": dict(num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16),
    "gemma3_text": dict(query_pre_attn_scalar=16),
    "llama4_text": dict(intermediate_size_mlp=96, moe_layers=[1], no_rope_layers=[1, 1, 0], interleave_moe_layer_step=2),
    "mamba2": dict(num_heads=8, head_dim=16, state_size=16, n_groups=2, expand=2, chunk_size=32),
}


def config(model_type, **fields):
    """A small config of a model type."""
    empty = CONFIG_MAPPING[model_type]()
    text = empty.get_text_config()
    if text is not empty:
        raise ValueError(f"{model_type} is no config of a text model alone")
    known = {k: v for k, v in SMALL.items() if k in vars(empty) or k in empty.attribute_map}
    return CONFIG_MAPPING[model_type](**known | CONFIGS.get(model_type, {}) | fields)


def fill(model, seed=1):
    """Gives every parameter random numbers, so that none is what a class begins with, and makes it BF16."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=g) * 0.05 + (1.0 if p.dim() == 1 else 0.0))
    return model.to(torch.bfloat16).eval()


def word_level():
    """A tokenizer that knows a few words and letters."""
    words = ["<pad>", "<s>", "</s>", "<unk>", *"The three laws of thermodynamics are".split(), *map(chr, range(97, 123))]
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    return dict(tokenizer_object=t, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def clip_tokenizer(scratch):
    """A tokenizer of CLIP's class that knows letters."""
    letters = [chr(c) for c in range(33, 127)]
    vocab = ["<|startoftext|>", "<|endoftext|>", *letters, *(c + "</w>" for c in letters)]
    (scratch / "vocab.json").write_text(json.dumps({w: i for i, w in enumerate(vocab)}))
    (scratch / "merges.txt").write_text("#version: 0.2\n")
    return transformers.CLIPTokenizer(scratch / "vocab.json", scratch / "merges.txt", model_max_length=16)


def language(path, architecture, model_type, **fields):
    """Saves a language model."""
    cls = getattr(transformers, architecture)
    model = fill(cls(config(model_type, **fields)))
    model.save_pretrained(path)
    transformers.PreTrainedTokenizerFast(**word_level(), model_input_names=["input_ids", "attention_mask"]).save_pretrained(path)
    return cls


def clip(cls):
    """A text encoder of CLIP."""
    return cls(transformers.CLIPTextConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, projection_dim=32,
        max_position_embeddings=16, bos_token_id=0, eos_token_id=1, pad_token_id=1))


def t5(cls, config, width=32):
    """A text encoder of T5."""
    return cls(config(vocab_size=WORDS, d_model=width, d_kv=8, d_ff=48, num_layers=1, num_heads=2, feed_forward_proj="gated-gelu"))


def t5_tokenizer():
    return transformers.T5TokenizerFast(**word_level(), extra_ids=0, model_max_length=16)


def pipeline(path, cls, scheduler, **components):
    """Saves a pipeline."""
    for i, part in enumerate(components.values()):
        if isinstance(part, torch.nn.Module):
            fill(part, i)
    cls(scheduler=scheduler, **components).save_pretrained(path)
    return cls


def image_vae():
    return diffusers.AutoencoderKL(latent_channels=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1)


def flux(path):
    path.mkdir(parents=True)
    return pipeline(
        path, diffusers.FluxPipeline, diffusers.FlowMatchEulerDiscreteScheduler(), vae=image_vae(),
        text_encoder=clip(transformers.CLIPTextModel), tokenizer=clip_tokenizer(path.parent),
        text_encoder_2=t5(transformers.T5EncoderModel, transformers.T5Config), tokenizer_2=t5_tokenizer(),
        transformer=diffusers.FluxTransformer2DModel(
            in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=16, num_attention_heads=4, joint_attention_dim=32,
            pooled_projection_dim=32, axes_dims_rope=(4, 6, 6), guidance_embeds=True))


def sd3(path):
    path.mkdir(parents=True)
    return pipeline(
        path, diffusers.StableDiffusion3Pipeline, diffusers.FlowMatchEulerDiscreteScheduler(), vae=image_vae(),
        text_encoder=clip(transformers.CLIPTextModelWithProjection), tokenizer=clip_tokenizer(path.parent),
        text_encoder_2=clip(transformers.CLIPTextModelWithProjection), tokenizer_2=clip_tokenizer(path.parent),
        text_encoder_3=t5(transformers.T5EncoderModel, transformers.T5Config, 64), tokenizer_3=t5_tokenizer(),
        transformer=diffusers.SD3Transformer2DModel(
            sample_size=16, in_channels=4, num_layers=3, attention_head_dim=16, num_attention_heads=4, joint_attention_dim=64,
            caption_projection_dim=64, pooled_projection_dim=64, out_channels=4, pos_embed_max_size=64,
            dual_attention_layers=(0,), qk_norm="rms_norm"))


def wan(path):
    return pipeline(
        path, diffusers.WanPipeline, diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=diffusers.AutoencoderKLWan(base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1),
        text_encoder=t5(transformers.UMT5EncoderModel, transformers.UMT5Config), tokenizer=t5_tokenizer(),
        transformer=diffusers.WanTransformer3DModel(
            num_attention_heads=4, attention_head_dim=16, text_dim=32, freq_dim=16, ffn_dim=96, num_layers=2))
