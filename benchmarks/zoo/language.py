"""Language, audio and multimodal models of transformers: small configurations with random weights."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

TOKENS = 64
SAMPLES = 4000  # of audio
# sizes of a small configuration, under each name that transformers gives them
SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size"), 256),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "hidden_dim", "d_inner"), 512),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 512),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_encoder_attention_heads", "num_decoder_attention_heads"), 4),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("head_dim", "d_kv"), 64),
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "n_group": 1,
    "topk_group": 1,
}
UNLIMITED = -1  # positions of a model that takes sequences of any length
LATENT = {
    "qk_rope_head_dim": 32,
    "qk_nope_head_dim": 32,
    "v_head_dim": 64,
    "kv_lora_rank": 64,
    "q_lora_rank": 64,
    "head_dim": 32,
    "num_key_value_heads": 4,
}
# what a configuration needs besides
OWN_SIZES: dict[str, dict[str, Any]] = {
    "deepseek_v2": LATENT,
    "deepseek_v3": {**LATENT, "first_k_dense_replace": 1},  # else both layers are without experts
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "mamba2": {"num_heads": 8},
}
ENCODERS = (
    "albert bert roberta distilbert electra deberta deberta-v2 mpnet camembert xlm-roberta convbert "
    "ernie fnet layoutlm mobilebert modernbert nystromformer rembert roformer squeezebert big_bird "
    "longformer luke xlnet"
)
DECODERS = (
    "gpt2 gpt_neo gpt_neox gptj opt bloom codegen falcon mpt phi phi3 llama qwen2 qwen3 mistral gemma "
    "gemma2 gemma3_text cohere olmo olmo2 stablelm starcoder2 granite smollm3 glm helium nemotron openai-gpt "
    "ctrl xglm biogpt rwkv mamba mamba2"
)
EXPERTS = "mixtral qwen2_moe qwen3_moe gpt_oss deepseek_v2 deepseek_v3 olmoe granitemoe phimoe jetmoe"
TRANSLATORS = "t5 bart mbart pegasus marian mt5 led umt5 prophetnet m2m_100 blenderbot"
AUDIO = "wav2vec2 hubert wavlm data2vec-audio unispeech sew whisper"
IMAGES_AND_TEXT = "clip_text_model clip_vision_model siglip_vision_model vit deit beit dinov2"
MODELS = tuple(" ".join((ENCODERS, DECODERS, EXPERTS, TRANSLATORS, AUDIO, IMAGES_AND_TEXT)).split())


def module_of(name: str) -> Any:
    """Returns a model with random weights, in ``eval`` mode. Raises what transformers raises."""
    configuration = configuration_of(name)
    configuration.use_cache = False
    return _transformers().AutoModel.from_config(configuration).eval()


def _transformers() -> Any:
    return importlib.import_module("transformers")


def configuration_of(name: str, larger: Mapping[str, int] = MappingProxyType({})) -> Any:
    """Returns a small configuration: the sizes of SIZES that the class has, and takes together.

    ``larger``: sizes in place of those of SIZES.
    """
    known: Any = _transformers().AutoConfig
    usual = known.for_model(name)
    sizes = {size: value for size, value in {**SIZES, **larger}.items() if hasattr(usual, size)}
    if getattr(usual, "layer_types", None) is not None:
        sizes["layer_types"] = None  # of as many layers as there were
    if getattr(usual, "max_position_embeddings", None) == UNLIMITED:
        del sizes["max_position_embeddings"]
    sizes |= OWN_SIZES.get(name, {})
    while True:
        try:
            return known.for_model(name, **sizes)
        except Exception as error:
            refused = [size for size in sizes if size in str(error)]
            if not refused:
                raise
            del sizes[refused[0]]


def inputs_of(module: Any) -> dict[str, Any]:
    """Returns example inputs of a model, by name: tokens, samples of audio, or an image.

    Raises ValueError for a model that takes something else.
    """
    import torch

    configuration = module.config
    makers = {
        "input_ids": lambda: torch.randint(3, 900, (1, TOKENS)),
        "input_values": lambda: torch.randn(1, SAMPLES),
        "pixel_values": lambda: torch.randn(1, 3, configuration.image_size, configuration.image_size),
        "input_features": lambda: torch.randn(
            1, configuration.num_mel_bins, 2 * configuration.max_source_positions
        ),
    }
    main = module.main_input_name
    if main not in makers:
        raise ValueError(f"takes {main}")
    inputs = {main: makers[main]()}
    if configuration.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(3, 900, (1, TOKENS // 4))
    return inputs
