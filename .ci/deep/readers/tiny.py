"""Tiny models of the real classes, with random BF16 weights, saved as their libraries save them."""
import inspect
import json
import re
import shutil

import diffusers
import safetensors
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
    d_model=64, d_ff=96, d_kv=16, num_layers=3, num_decoder_layers=3, num_heads=4, encoder_layers=3, decoder_layers=3,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, ffn_dim=96, word_embed_proj_dim=64,
    image_size=28, patch_size=14, depth=2, embed_dim=64, out_hidden_size=64, projection_dim=64, num_channels=3, in_channels=3,
    num_mel_bins=16, max_source_positions=20, max_target_positions=64, decoder_start_token_id=1, image_token_id=5, video_token_id=6,
    image_token_index=5, audio_token_id=7, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
    linear_value_head_dim=16, dropout=0.0, attention_dropout=0.0, hidden_dropout=0.0, resid_pdrop=0.0, embd_pdrop=0.0,
)

MROPE = dict(rope_scaling=dict(type="default", rope_type="default", mrope_section=[2, 3, 3]))
SECTIONS = dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 3, 3]))

# What single classes need besides, by model_type.
CONFIGS = {
    "bart": dict(forced_bos_token_id=None, forced_eos_token_id=None),
    "deepseek_v2": dict(num_key_value_heads=4), "glm4_moe_lite": dict(num_key_value_heads=4),
    "mistral_large4_text": dict(num_key_value_heads=4),
    "deepseek_v3": dict(head_dim=8, num_key_value_heads=4),  # the dimension is qk_rope_head_dim
    "lfm2_moe": dict(layer_types=["conv", "full_attention", "conv"], num_dense_layers=1),
    "falcon_h1": dict(mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=32),
    "deepseek_v32": dict(head_dim=8, num_key_value_heads=4), "glm_moe_dsa": dict(head_dim=8, num_key_value_heads=4),
    "mistral4": dict(head_dim=8, num_key_value_heads=4),
    "deepseek_v4": dict(  # each kind of attention and of routing
        layer_types=["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"],
        mlp_layer_types=["hash_moe", "moe", "moe"], compress_rates=dict(compressed_sparse_attention=2, heavily_compressed_attention=4),
        o_groups=2, o_lora_rank=16, index_n_heads=2, index_head_dim=16, index_topk=4),
    "step3p5": dict(mlp_layer_types=["dense", "sparse", "sparse"], share_expert_dim=32),
    "gemma4_text": dict(vocab_size_per_layer_input=WORDS, hidden_size_per_layer_input=16, global_head_dim=16),
    "granitemoehybrid": dict(layer_types=["mamba", "attention", "mamba"], mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_chunk_size=32),
    "hunyuan_v1_moe": dict(moe_topk=4),
    "phimoe": dict(num_local_experts=2),
    "qwen3_next": dict(num_hidden_layers=4),
    "qwen3_5_text": dict(num_hidden_layers=4), "qwen3_5_moe_text": dict(num_hidden_layers=4),
    "gemma3_text": dict(query_pre_attn_scalar=16),
    "llama4_text": dict(intermediate_size_mlp=96, moe_layers=[1], no_rope_layers=[1, 1, 0], interleave_moe_layer_step=2),
    "mamba2": dict(num_heads=8, head_dim=16, state_size=16, n_groups=2, expand=2, chunk_size=32),
    "gptj": dict(rotary_dim=8), "codegen": dict(rotary_dim=8), "gpt_neo": dict(attention_types=[[["global"], 3]], num_layers=3),
    "llama4_vision_model": dict(vision_output_dim=64, projector_input_dim=64, projector_output_dim=64, intermediate_size=256),
    "jamba": dict(use_mamba_kernels=False, num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1, mamba_dt_rank=4),
    "zamba": dict(use_mamba_kernels=False, mamba_dt_rank=4, attention_head_dim=32, num_hidden_layers=4, layers_block_type=["mamba", "mamba", "hybrid", "mamba"]),
    "zamba2": dict(layers_block_type=["mamba", "hybrid", "hybrid"], num_hidden_layers=3, mamba_d_state=16, n_mamba_heads=8, mamba_headdim=16, use_mamba_kernels=False, chunk_size=32, num_mem_blocks=1, attention_head_dim=32, attention_hidden_size=128),
    "bamba": dict(attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_chunk_size=32),
    "jetmoe": dict(num_key_value_heads=2, kv_channels=16, num_attention_heads=4), "longcat_flash": dict(head_dim=8, moe_topk=2, expert_ffn_hidden_size=32, ffn_hidden_size=96, zero_expert_num=1),
    
    "moonshine": dict(encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4, encoder_num_key_value_heads=4, decoder_num_key_value_heads=4),
    "mllama_text_model": dict(cross_attention_layers=[1], num_hidden_layers=3, rope_scaling=dict(rope_type="default")),
    "mllama_vision_model": dict(hidden_size=64, attention_heads=4, num_global_layers=2, max_num_tiles=2, vision_output_dim=192,
                                intermediate_layers_indices=[0, 1], supported_aspect_ratios=[[1, 1], [1, 2]]),
    "qwen2_vl_text": MROPE, "qwen2_5_vl_text": MROPE, "glm4v_text": MROPE, "glm4v_moe_text": MROPE | dict(partial_rotary_factor=1.0),
    "Glm4vMoe_text": MROPE | dict(partial_rotary_factor=1.0),
    "qwen3_vl_text": dict(rope_scaling=dict(rope_type="default", mrope_section=[2, 3, 3])),
    "qwen3_omni_moe_text": MROPE, "glm_ocr_text": SECTIONS,
    "gemma3n_text": dict(
        num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2, num_kv_shared_layers=2, activation_sparsity_pattern=[0.5] * 4,
        vocab_size_per_layer_input=WORDS, hidden_size_per_layer_input=16, laurel_rank=8),
    "qwen3_vl_moe_text": dict(rope_scaling=dict(rope_type="default", mrope_section=[2, 3, 3])),
    "minicpm3": dict(num_key_value_heads=4),
    "qwen2_vl": dict(), "t5": dict(feed_forward_proj="gated-gelu"),
}


# What classes need besides, by model_type, so that they have experts in one tensor.
FUSED = {"gemma4_text": dict(enable_moe_block=True, top_k_experts=2)}


def config(cls, fused=False, **fields):
    """A small config of a config class, and of those that it holds."""
    empty = cls()
    known = {k: v for k, v in SMALL.items() if k in vars(empty) or k in empty.attribute_map}
    for name in cls.sub_configs:
        if (part := getattr(empty, name, None)) is not None:
            known[name] = config(type(part), fused).to_dict() if "text" in name else tower(part, fused)
    if cls.model_type == "gemma4":  # has no tower unless asked for
        known["vision_config"] = config(CONFIG_MAPPING["gemma4_vision"]).to_dict()
    return cls(**known | CONFIGS.get(cls.model_type, {}) | (FUSED.get(cls.model_type, {}) if fused else {}) | fields)


def tower(part, fused):
    """A small config of a part that isn't the text model: its inner width is another, as in real models."""
    inner = "intermediate_size"
    other = {inner: 160} if hasattr(part, inner) and inner not in CONFIGS.get(part.model_type, {}) else {}
    return config(type(part), fused, **other).to_dict()


# The argument with which transformers loads a model in BF16.
BF16 = {"dtype" if tuple(map(int, transformers.__version__.split(".")[:2])) >= (4, 56) else "torch_dtype": torch.bfloat16}


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
    return transformers.CLIPTokenizer(str(scratch / "vocab.json"), str(scratch / "merges.txt"), model_max_length=16)


def real_class(name, switched=False):
    """The class that is saved under a name: a pipeline for a class of diffusers, if this version has it; else None."""
    name = name.partition("=")[2] or name
    if name in PARTS or name in PIPELINES:
        if not hasattr(diffusers, name):
            return None
        return PIPELINES[name][0] if in_pipeline(name, switched) else OnePart
    return getattr(transformers, name, None)


def in_pipeline(name, switched):
    """Whether a class of diffusers is tried in a whole pipeline: with switches turned only if PARTS has no step for it."""
    return name in PIPELINES and not (switched and name in PARTS)


def part_config(name, switched=False):
    """The config of a tiny model of a class of diffusers."""
    config = PARTS[name][0] if name in PARTS else PIPELINES[name][2]
    return config | SWITCHES[name][0] if switched else config


def save(path, name, model_type, tied=None, switched=False):
    """Saves a tiny model of a class, with a tokenizer or as a pipeline; switched turns on what SWITCHES says of the class.

    The type is that of one of the configs with which the class goes. "CausalLM=Model" is a Model that is stated to be a CausalLM.
    """
    stated, _, real = name.partition("=")
    model_type, _, fused = model_type.partition("+")
    cls = real_class(name)
    if issubclass(cls, diffusers.DiffusionPipeline):
        transformer = getattr(diffusers, name)(**part_config(name, switched))
        if in_pipeline(name, switched):
            PIPELINES[name][1](path, transformer)
        else:
            OnePart(fill(transformer)).save_pretrained(path)
        return
    small = config(CONFIG_MAPPING[model_type] if model_type in CONFIG_MAPPING else cls.config_class, bool(fused))
    if not isinstance(small, cls.config_class):  # "roberta" under XLMRobertaModel
        small = config(cls.config_class, bool(fused))
    if tied is not None:
        small.tie_word_embeddings = small.get_text_config().tie_word_embeddings = tied
    model = fill(cls(small))
    model.save_pretrained(path)
    if fused and not fuses(path):  # transformers 5 splits experts when it saves them, unless asked not to
        shutil.rmtree(path)
        model.save_pretrained(path, save_original_format=False)
    stored = json.loads((path / "config.json").read_text())
    if real or stored["model_type"] != model_type:
        (path / "config.json").write_text(json.dumps(stored | dict(architectures=[stated], model_type=model_type)))
    if "vocab_size" in vars(small.get_text_config()):
        transformers.PreTrainedTokenizerFast(**word_level(), model_input_names=["input_ids", "attention_mask"]).save_pretrained(path)


def fuses(path):
    """Whether a model is stored with all experts of a layer in one tensor."""
    files = [safetensors.safe_open(file, "pt") for file in path.rglob("*.safetensors")]
    return any(re.search("expert|moe", name) and len(f.get_slice(name).get_shape()) == 3 for f in files for name in f.keys())


def calls(model):
    """What the model and its parts are called with, as functions of such a model."""
    g = torch.Generator().manual_seed(3)
    ids = torch.randint(8, WORDS, (2, 17), generator=g).to(model.device)
    made = []

    def call(**inputs):
        made.append(lambda m: m(**inputs))

    def rand(*shape):
        return torch.randn(shape, generator=g).to(model.device, torch.bfloat16)

    name, c = model.main_input_name, model.config
    takes = inspect.signature(model.forward).parameters
    decoder = dict(decoder_input_ids=ids) if "decoder_input_ids" in takes else {}
    if name == "input_ids":
        if "pixel_values" in takes and hasattr(model, "logit_scale"):  # two towers
            v = c.vision_config
            decoder["pixel_values"] = rand(2, v.num_channels, v.image_size, v.image_size)
        call(input_ids=ids, **decoder)
    elif name == "pixel_values":
        size = c.image_size
        call(pixel_values=rand(1, c.num_channels, size, size))
    elif name == "input_features":
        call(input_features=rand(1, c.num_mel_bins, 2 * c.max_source_positions), **decoder)
    elif name == "input_values":
        call(input_values=rand(1, 4000), **decoder)
    for path, module in model.named_modules():
        if path.rpartition(".")[2] in ("visual", "vision_tower", "vision_model") and hasattr(module, "config"):
            c = module.config
            if hasattr(c, "max_num_tiles"):  # Mllama
                inputs = (rand(1, 1, 2, c.num_channels, c.image_size, c.image_size), torch.ones(1, 1, dtype=torch.long, device=model.device),
                          torch.ones(1, 1, 2, dtype=torch.long, device=model.device))
            elif hasattr(c, "pooling_kernel_size"):  # Gemma 4: six by six patches
                inputs = (rand(1, 36, 3 * c.patch_size ** 2), torch.cartesian_prod(*2 * [torch.arange(6, device=model.device)])[None])
            elif hasattr(c, "temporal_patch_size"):
                grid = torch.tensor([[1, 4, 4]], device=model.device)
                inputs = (rand(16, getattr(c, "in_channels", 3) * c.temporal_patch_size * c.patch_size ** 2), grid)
            elif isinstance(getattr(c, "image_size", None), (int, list)):
                height, width = (c.image_size, c.image_size) if isinstance(c.image_size, int) else c.image_size
                inputs = (rand(1, c.num_channels, height, width),)
            else:
                continue
            made.append(lambda m, p=path, i=inputs: m.get_submodule(p)(*i))
            break
    return made


class OnePart(diffusers.DiffusionPipeline):
    """A pipeline of a transformer alone."""

    def __init__(self, transformer):
        super().__init__()
        self.register_modules(transformer=transformer)


diffusers.OnePart = OnePart


def clip(cls):
    """A text encoder of CLIP."""
    return cls(transformers.CLIPTextConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, projection_dim=32,
        max_position_embeddings=16, bos_token_id=0, eos_token_id=1, pad_token_id=1))


def t5(cls, config, width=32):
    """A text encoder of T5."""
    return cls(config(vocab_size=WORDS, d_model=width, d_kv=8, d_ff=48, num_layers=1, num_heads=2, feed_forward_proj="gated-gelu"))


def t5_tokenizer():
    if transformers.__version__[0] == "5":  # takes no tokenizer, but the pieces of one
        pieces = [(w, 0.0) for w in ("<pad>", "</s>", "<unk>")] + [(chr(c), -1.0) for c in range(97, 123)]
        return transformers.T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=16)
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


def flux(path, transformer):
    path.mkdir(parents=True)
    return pipeline(
        path, diffusers.FluxPipeline, diffusers.FlowMatchEulerDiscreteScheduler(), vae=image_vae(),
        text_encoder=clip(transformers.CLIPTextModel), tokenizer=clip_tokenizer(path.parent),
        text_encoder_2=t5(transformers.T5EncoderModel, transformers.T5Config), tokenizer_2=t5_tokenizer(),
        transformer=transformer)


def sd3(path, transformer):
    path.mkdir(parents=True)
    return pipeline(
        path, diffusers.StableDiffusion3Pipeline, diffusers.FlowMatchEulerDiscreteScheduler(), vae=image_vae(),
        text_encoder=clip(transformers.CLIPTextModelWithProjection), tokenizer=clip_tokenizer(path.parent),
        text_encoder_2=clip(transformers.CLIPTextModelWithProjection), tokenizer_2=clip_tokenizer(path.parent),
        text_encoder_3=t5(transformers.T5EncoderModel, transformers.T5Config, 64), tokenizer_3=t5_tokenizer(),
        transformer=transformer)


def wan(path, transformer):
    return pipeline(
        path, diffusers.WanPipeline, diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=diffusers.AutoencoderKLWan(base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1),
        text_encoder=t5(transformers.UMT5EncoderModel, transformers.UMT5Config), tokenizer=t5_tokenizer(),
        transformer=transformer)


def sample(pipe):
    """Two steps of a pipeline from a fixed prompt and noise."""
    call = dict(num_inference_steps=2, generator=torch.Generator().manual_seed(5), output_type="latent", height=64, width=64)
    call |= dict(num_frames=5) if isinstance(pipe, diffusers.WanPipeline) else {}
    pipe.set_progress_bar_config(disable=True)
    return pipe("The three laws", max_sequence_length=16, return_dict=False, **call)


def denoise(part):
    """One step of a part, from fixed noise."""
    g = torch.Generator().manual_seed(5)

    def value(v):
        if isinstance(v, Noise):
            return torch.randn(v, generator=g).to(torch.bfloat16)
        return [value(x) for x in v] if isinstance(v, list) else v
    name = type(part).__name__
    turned, besides = SWITCHES.get(name, ({}, {}))
    switched = all(str(part.config[key]) == str(v) for key, v in turned.items())
    step = PARTS[name][1] | (besides if switched else {})
    return part(**{name: value(v) for name, v in step.items()}, return_dict=False)


class Noise(tuple):
    """The shape of an input of random numbers."""


def noise(*shape):
    return Noise(shape)


def ones(*shape):
    return torch.ones(shape)


HEADS = dict(num_attention_heads=4, attention_head_dim=16, num_layers=2)
SINGLE = HEADS | dict(num_single_layers=2)
VIDEO = dict(hidden_states=noise(1, 16, 1, 8, 8), timestep=torch.tensor([5]), encoder_hidden_states=noise(1, 4, 32))
WAN = HEADS | dict(in_channels=16, out_channels=16, text_dim=32, freq_dim=16, ffn_dim=96)
STEP = dict(timestep=torch.tensor([0.5]), img_ids=torch.zeros(16, 3), txt_ids=torch.zeros(4, 3))
MASK = dict(encoder_attention_mask=ones(1, 4).bool())

# Classes of diffusers that are tried in a whole pipeline: its class, what saves it, and the config of its transformer.
PIPELINES = {
    "FluxTransformer2DModel": (
        diffusers.FluxPipeline, flux,
        SINGLE | dict(in_channels=16, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 6, 6))),
    "SD3Transformer2DModel": (
        diffusers.StableDiffusion3Pipeline, sd3,
        HEADS | dict(sample_size=16, in_channels=4, num_layers=3, joint_attention_dim=64, caption_projection_dim=64,
                     pooled_projection_dim=64, out_channels=4, pos_embed_max_size=64)),
    "WanTransformer3DModel": (diffusers.WanPipeline, wan, WAN),
}

# What models of a class turn on that tiny ones of it leave off, and what one step takes besides. Each class is tried both ways.
IMAGE = (dict(image_dim=24, added_kv_proj_dim=64, pos_embed_seq_len=10), dict(encoder_hidden_states_image=noise(2, 5, 24)))
SWITCHES = {
    "FluxTransformer2DModel": (dict(guidance_embeds=True), {}),
    "SD3Transformer2DModel": (dict(qk_norm="rms_norm", dual_attention_layers=(0,)), {}),
    "WanTransformer3DModel": IMAGE, "SkyReelsV2Transformer3DModel": IMAGE,
    "QwenImageTransformer2DModel": (dict(use_additional_t_cond=True), dict(additional_t_cond=torch.zeros(1).long())),
    "SanaTransformer2DModel": (dict(guidance_embeds=True, qk_norm="rms_norm_across_heads"), dict(guidance=ones(1))),
    "CogVideoXTransformer3DModel": (dict(ofs_embed_dim=16), dict(ofs=torch.tensor([2.0]))),
    "HunyuanImageTransformer2DModel": (
        dict(guidance_embeds=True, text_embed_2_dim=24),
        dict(guidance=ones(1), encoder_hidden_states_2=noise(1, 3, 24), encoder_attention_mask_2=ones(1, 3).bool())),
    "PixArtTransformer2DModel": (
        dict(use_additional_conditions=True, attention_head_dim=24, cross_attention_dim=96),  # the width must be a multiple of 3
        dict(added_cond_kwargs=dict(resolution=ones(1, 2), aspect_ratio=ones(1, 1)))),
    "BriaFiboTransformer2DModel": (dict(guidance_embeds=True), dict(guidance=ones(1))),
    "LTX2VideoTransformer3DModel": (
        dict(gated_attn=True, cross_attn_mod=True, audio_gated_attn=True, audio_cross_attn_mod=True),
        dict(sigma=torch.tensor([0.5]), audio_sigma=torch.tensor([0.5]))),
}

# Those that are tried alone, and with switches turned also of PIPELINES: config, and what one step takes.
PARTS = {
    "WanTransformer3DModel": (WAN, VIDEO),
    "NucleusMoEImageTransformer2DModel": (
        HEADS | dict(in_channels=16, out_channels=4, num_layers=6, joint_attention_dim=32, axes_dims_rope=(4, 6, 6), num_experts=4,
                     moe_intermediate_dim=32, capacity_factors=2.0),
        dict(hidden_states=noise(1, 16, 16), img_shapes=[(1, 4, 4)], encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([0.5]))),
    "QwenImageTransformer2DModel": (
        HEADS | dict(in_channels=16, out_channels=4, joint_attention_dim=32, axes_dims_rope=(4, 6, 6)),
        dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 32), encoder_hidden_states_mask=ones(1, 4).long(),
             timestep=torch.tensor([0.5]), img_shapes=[[(1, 4, 4)]])),
    "ZImageTransformer2DModel": (
        dict(in_channels=16, dim=64, n_layers=2, n_refiner_layers=1, n_heads=4, n_kv_heads=4, cap_feat_dim=32, axes_dims=[4, 6, 6], axes_lens=[64, 32, 32]),
        dict(x=[noise(16, 1, 8, 8)], t=torch.tensor([0.5]), cap_feats=[noise(8, 32)])),
    "Flux2Transformer2DModel": (
        SINGLE | dict(in_channels=16, joint_attention_dim=32, timestep_guidance_channels=32, axes_dims_rope=(4, 4, 4, 4)),
        dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([0.5]), guidance=ones(1),
             img_ids=torch.zeros(1, 16, 4), txt_ids=torch.zeros(1, 4, 4))),
    "ChromaTransformer2DModel": (
        SINGLE | dict(in_channels=16, joint_attention_dim=32, axes_dims_rope=(4, 6, 6), approximator_num_channels=16, approximator_hidden_dim=32),
        STEP | dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 32))),
    "HiDreamImageTransformer2DModel": (
        SINGLE | dict(patch_size=2, in_channels=4, out_channels=4, caption_channels=[32, 16], text_emb_dim=64, axes_dims_rope=(8, 4, 4), max_resolution=(32, 32), llama_layers=(0, 1, 2, 3)),
        dict(hidden_states=noise(1, 4, 8, 8), timesteps=torch.tensor([5]), encoder_hidden_states_t5=noise(1, 4, 32), encoder_hidden_states_llama3=noise(4, 1, 4, 16), pooled_embeds=noise(1, 64))),
    "CogVideoXTransformer3DModel": (
        HEADS | dict(in_channels=4, out_channels=4, time_embed_dim=16, text_embed_dim=32, sample_width=8, sample_height=8, sample_frames=5, max_text_seq_length=4),
        dict(hidden_states=noise(1, 2, 4, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]))),
    "CogView4Transformer2DModel": (
        HEADS | dict(in_channels=4, out_channels=4, text_embed_dim=32, time_embed_dim=16, condition_dim=16, pos_embed_max_size=16, sample_size=16, rope_axes_dim=(16, 16)),
        dict(hidden_states=noise(1, 4, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]), original_size=ones(1, 2), target_size=ones(1, 2), crop_coords=ones(1, 2))),
    "LTXVideoTransformer3DModel": (
        HEADS | dict(in_channels=8, out_channels=8, cross_attention_dim=64, caption_channels=32),
        MASK | dict(hidden_states=noise(1, 16, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]), num_frames=1, height=4, width=4)),
    "LTX2VideoTransformer3DModel": (
        HEADS | dict(in_channels=8, out_channels=8, cross_attention_dim=64, audio_in_channels=8, audio_out_channels=8, audio_num_attention_heads=4, audio_attention_head_dim=16, audio_cross_attention_dim=64, caption_channels=32),
        dict(hidden_states=noise(1, 16, 8), audio_hidden_states=noise(1, 6, 8), encoder_hidden_states=noise(1, 4, 32), audio_encoder_hidden_states=noise(1, 4, 32),
             timestep=torch.tensor([5]), encoder_attention_mask=ones(1, 4), audio_encoder_attention_mask=ones(1, 4), num_frames=1, height=4, width=4, audio_num_frames=6)),
    "HunyuanVideoTransformer3DModel": (
        SINGLE | dict(in_channels=16, out_channels=16, num_refiner_layers=1, text_embed_dim=32, pooled_projection_dim=16, rope_axes_dim=(4, 6, 6)),
        VIDEO | MASK | dict(pooled_projections=noise(1, 16), guidance=ones(1))),
    "HunyuanVideo15Transformer3DModel": (
        HEADS | dict(in_channels=16, out_channels=16, num_refiner_layers=1, text_embed_dim=32, text_embed_2_dim=24, image_embed_dim=16, rope_axes_dim=(4, 6, 6), task_type="t2v"),
        VIDEO | MASK | dict(timestep=torch.tensor([5.0]).bfloat16(), encoder_hidden_states_2=noise(1, 3, 24), encoder_attention_mask_2=ones(1, 3).bool(), image_embeds=noise(1, 5, 16))),
    "HunyuanImageTransformer2DModel": (
        SINGLE | dict(in_channels=16, out_channels=16, num_refiner_layers=1, text_embed_dim=32, rope_axes_dim=(8, 8)),
        MASK | dict(hidden_states=noise(1, 16, 8, 8), timestep=torch.tensor([5.0]).bfloat16(), encoder_hidden_states=noise(1, 4, 32))),
    "Lumina2Transformer2DModel": (
        dict(sample_size=16, in_channels=4, hidden_size=48, num_layers=2, num_refiner_layers=1, num_attention_heads=3, num_kv_heads=1, multiple_of=16, axes_dim_rope=(4, 6, 6), axes_lens=(32, 32, 32), cap_feat_dim=32),
        MASK | dict(hidden_states=noise(1, 4, 8, 8), timestep=torch.tensor([0.5]), encoder_hidden_states=noise(1, 4, 32))),
    "MochiTransformer3DModel": (
        HEADS | dict(pooled_projection_dim=32, in_channels=4, text_embed_dim=32, time_embed_dim=16, max_sequence_length=8),
        MASK | dict(hidden_states=noise(1, 4, 2, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]))),
    "PixArtTransformer2DModel": (
        HEADS | dict(in_channels=4, out_channels=8, cross_attention_dim=64, sample_size=8, caption_channels=32, use_additional_conditions=False),
        dict(hidden_states=noise(1, 4, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]), added_cond_kwargs=dict(resolution=None, aspect_ratio=None))),
    "SanaTransformer2DModel": (
        HEADS | dict(in_channels=4, out_channels=4, num_cross_attention_heads=4, cross_attention_head_dim=16, cross_attention_dim=64, caption_channels=32, sample_size=8),
        dict(hidden_states=noise(1, 4, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]))),
    "AuraFlowTransformer2DModel": (
        dict(sample_size=8, in_channels=4, num_mmdit_layers=2, num_single_dit_layers=2, attention_head_dim=16, num_attention_heads=4, joint_attention_dim=32, caption_projection_dim=64, pos_embed_max_size=64),
        dict(hidden_states=noise(1, 4, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([0.5]))),
    "AllegroTransformer3DModel": (
        dict(num_attention_heads=4, attention_head_dim=24, num_layers=2, in_channels=4, out_channels=4, cross_attention_dim=96, sample_height=8, sample_width=8, sample_frames=2, caption_channels=32),
        dict(hidden_states=noise(1, 4, 2, 8, 8), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5]), attention_mask=ones(1, 2, 8, 8), encoder_attention_mask=ones(1, 4))),
    "WanVACETransformer3DModel": (WAN | dict(vace_layers=[0], vace_in_channels=48), VIDEO | dict(control_hidden_states=noise(1, 48, 1, 8, 8))),
    "SkyReelsV2Transformer3DModel": (WAN, VIDEO),
    "UNet2DConditionModel": (
        dict(sample_size=8, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), block_out_channels=(32, 64), layers_per_block=1,
             cross_attention_dim=32, attention_head_dim=(2, 4), use_linear_projection=True, transformer_layers_per_block=(1, 2), addition_embed_type="text_time", addition_time_embed_dim=8,
             projection_class_embeddings_input_dim=80),
        dict(sample=noise(1, 4, 8, 8), timestep=torch.tensor([5]), encoder_hidden_states=noise(1, 4, 32), added_cond_kwargs=dict(text_embeds=ones(1, 32).bfloat16(), time_ids=ones(1, 6)))),
    "Kandinsky5Transformer3DModel": (
        dict(in_visual_dim=4, in_text_dim=32, in_text_dim2=16, time_dim=32, out_visual_dim=4, model_dim=64, ff_dim=96, num_text_blocks=1, num_visual_blocks=2, axes_dims=(4, 6, 6)),
        dict(hidden_states=noise(1, 1, 8, 8, 4), encoder_hidden_states=noise(1, 4, 32), timestep=torch.tensor([5.0]).bfloat16(), pooled_projections=noise(1, 16),
             visual_rope_pos=[torch.arange(1), torch.arange(4), torch.arange(4)], text_rope_pos=torch.arange(4))),
    "BriaFiboTransformer2DModel": (
        SINGLE | dict(in_channels=16, joint_attention_dim=64, axes_dims_rope=[4, 6, 6], text_encoder_dim=32),
        STEP | dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 64), text_encoder_layers=[noise(1, 4, 32)] * 4)),
    "ErnieImageTransformer2DModel": (
        dict(hidden_size=64, num_attention_heads=4, num_layers=2, ffn_hidden_size=96, in_channels=16, out_channels=16, text_in_dim=32, rope_axes_dim=(4, 6, 6)),
        dict(hidden_states=noise(1, 16, 4, 4), timestep=torch.tensor([5]), text_bth=noise(1, 4, 32), text_lens=torch.tensor([4]))),
    "LongCatImageTransformer2DModel": (
        SINGLE | dict(in_channels=16, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 6, 6]),
        STEP | dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 32))),
    "OvisImageTransformer2DModel": (
        SINGLE | dict(in_channels=16, out_channels=16, joint_attention_dim=32, axes_dims_rope=(4, 6, 6)),
        STEP | dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 32))),
    "PRXTransformer2DModel": (
        dict(in_channels=4, context_in_dim=32, hidden_size=64, mlp_ratio=2.0, num_heads=4, depth=2, axes_dim=[8, 8]),
        dict(hidden_states=noise(1, 4, 8, 8), timestep=torch.tensor([0.5]), encoder_hidden_states=noise(1, 4, 32))),
    "OmniGenTransformer2DModel": (
        dict(in_channels=4, hidden_size=64, num_attention_heads=4, num_key_value_heads=4, intermediate_size=96, num_layers=2, pad_token_id=0, vocab_size=100, max_position_embeddings=64,
             original_max_position_embeddings=32, rope_scaling=dict(long_factor=[1.0] * 8, short_factor=[1.0] * 8), pos_embed_max_size=16, time_step_dim=4),
        dict(hidden_states=noise(1, 4, 8, 8), timestep=torch.tensor([0.5]), input_ids=torch.arange(20)[None], input_img_latents=[noise(1, 4, 8, 8)], input_image_sizes={0: [[0, 16]]},
             attention_mask=ones(1, 37, 37), position_ids=torch.arange(37)[None])),
    "StableAudioDiTModel": (
        HEADS | dict(sample_size=8, in_channels=3, num_key_value_attention_heads=2, out_channels=3, cross_attention_dim=16, time_proj_dim=8, global_states_input_dim=8, cross_attention_input_dim=16),
        dict(hidden_states=noise(1, 3, 8), timestep=torch.tensor([0.5]), encoder_hidden_states=noise(1, 4, 16), global_hidden_states=noise(1, 1, 8),
             rotary_embedding=(ones(9, 8), ones(9, 8)))),
    "HunyuanDiT2DModel": (
        dict(sample_size=16, num_layers=2, patch_size=2, attention_head_dim=16, num_attention_heads=4, in_channels=4, hidden_size=64, cross_attention_dim=32, cross_attention_dim_t5=32, pooled_projection_dim=16,
             text_len=4, text_len_t5=4, use_style_cond_and_image_meta_size=False),
        dict(hidden_states=noise(1, 4, 16, 16), timestep=torch.tensor([5.0]).bfloat16(), encoder_hidden_states=noise(1, 4, 32), text_embedding_mask=ones(1, 4).bool(), encoder_hidden_states_t5=noise(1, 4, 32),
             text_embedding_mask_t5=ones(1, 4).bool())),
    "Krea2Transformer2DModel": (
        dict(in_channels=16, num_layers=2, attention_head_dim=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96, timestep_embed_dim=16, text_hidden_dim=32, num_text_layers=2,
             text_num_attention_heads=2, text_num_key_value_heads=2, text_intermediate_size=48, num_layerwise_text_blocks=1, num_refiner_text_blocks=1, axes_dims_rope=(4, 6, 6)),
        dict(hidden_states=noise(1, 16, 16), encoder_hidden_states=noise(1, 4, 2, 32), timestep=torch.tensor([0.5]), position_ids=torch.zeros(20, 3))),
}
