"""Language models of Hugging Face's transformers as they are written, tiny, with random weights.

Nothing is downloaded: each is made from its configuration, with 32 numbers a token and one layer, or two
where layers are of two kinds.
"""

import importlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

TOKENS = 8  # of each of two sequences
VOCABULARY = 99
MEL_BINS = 8  # of a spectrogram
SETTINGS = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TWO_KINDS = {"num_hidden_layers": 2}  # of layers, such as local and global attention
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}  # two heads of queries for each of keys and values
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 4}
ENCODER_DECODER = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "decoder_start_token_id": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
AUDIO = {"num_mel_bins": MEL_BINS, "max_source_positions": TOKENS, "max_target_positions": 64}
# its number of positions has no limit, and the configuration refuses one
XLNET = {"max_position_embeddings": None, "d_model": 32, "n_layer": 1, "n_head": 4, "d_inner": 64}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_key_value_heads": 2}
LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}


@dataclass(frozen=True)
class LanguageModel:
    """A kind of model by transformers' name, and what its configuration has beside ``SETTINGS``."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    has_mask: bool = True  # whether forward takes an attention mask


LANGUAGE_MODELS = (
    LanguageModel("bert"),
    LanguageModel("roberta"),
    LanguageModel("albert", {"embedding_size": 16}),
    LanguageModel("distilbert", {"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64}),
    LanguageModel("electra", {"embedding_size": 16}),
    LanguageModel("deberta", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    LanguageModel("mpnet"),
    LanguageModel("xlm-roberta"),
    LanguageModel("convbert", {"embedding_size": 32, "head_ratio": 2, "conv_kernel_size": 3}),
    LanguageModel("fnet", has_mask=False),
    LanguageModel("modernbert", TWO_KINDS | {"local_attention": 8}),
    LanguageModel("roformer"),
    LanguageModel("megatron-bert"),
    LanguageModel("esm", {"position_embedding_type": "rotary", "emb_layer_norm_before": False}),
    LanguageModel("t5", T5),
    LanguageModel("mt5", T5),
    LanguageModel("bart", ENCODER_DECODER),
    LanguageModel("mbart", ENCODER_DECODER),
    LanguageModel("pegasus", ENCODER_DECODER),
    LanguageModel("marian", ENCODER_DECODER),
    LanguageModel("m2m_100", ENCODER_DECODER),
    LanguageModel("blenderbot", ENCODER_DECODER),
    LanguageModel("whisper", ENCODER_DECODER | AUDIO, has_mask=False),
    LanguageModel("xlnet", XLNET),
    LanguageModel("llama"),
    LanguageModel("mistral", GROUPED),
    LanguageModel("qwen2", {"num_key_value_heads": 2}),
    LanguageModel("qwen3", GROUPED),
    LanguageModel("gemma", GROUPED),
    LanguageModel("gemma2", TWO_KINDS | GROUPED | {"sliding_window": 8}),
    LanguageModel("gemma3_text", TWO_KINDS | GROUPED | {"sliding_window": 8}),
    LanguageModel("phi"),
    LanguageModel("phi3", {"num_key_value_heads": 2}),
    LanguageModel("gpt2"),
    LanguageModel("gpt_neo", TWO_KINDS | {"attention_types": [[["global", "local"], 1]], "window_size": 8}),
    LanguageModel("gpt_neox"),
    LanguageModel("gptj", {"rotary_dim": 4}),
    LanguageModel("opt", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    LanguageModel("bloom"),
    LanguageModel("falcon"),
    LanguageModel("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 1, "max_seq_len": 64}),
    LanguageModel("stablelm", {"num_key_value_heads": 2}),
    LanguageModel("starcoder2", {"num_key_value_heads": 2}),
    LanguageModel("olmo"),
    LanguageModel("olmo2"),
    LanguageModel("granite"),
    LanguageModel("cohere"),
    LanguageModel("cohere2", TWO_KINDS),
    LanguageModel("codegen", {"rotary_dim": 4}),
    LanguageModel("ctrl", {"dff": 64}),
    LanguageModel("gpt_bigcode"),
    LanguageModel("openai-gpt"),
    LanguageModel("xglm", {"d_model": 32, "ffn_dim": 64, "attention_heads": 4, "num_layers": 1}),
    LanguageModel("biogpt"),
    LanguageModel("persimmon"),
    LanguageModel("nemotron", GROUPED),
    LanguageModel("glm", GROUPED),
    LanguageModel("helium", GROUPED),
    LanguageModel("smollm3", {"num_key_value_heads": 2}),
    LanguageModel("exaone4", TWO_KINDS | GROUPED),
    LanguageModel("mamba", {"state_size": 4}, has_mask=False),
    LanguageModel("mixtral", GROUPED | {"num_local_experts": 4}),
    LanguageModel("qwen3_moe", EXPERTS | {"num_experts": 4, "head_dim": 8}),
    LanguageModel("olmoe", {"num_experts": 4, "num_experts_per_tok": 2}),
    LanguageModel("deepseek_v3", TWO_KINDS | LATENT),
    LanguageModel("gpt_oss", TWO_KINDS | GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}),
)


def build(model: LanguageModel) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Returns a model in evaluation mode and its keyword inputs, the same numbers each time."""
    transformers: Any = importlib.import_module("transformers")  # not among tuner's own dependencies
    torch.manual_seed(0)
    settings = {name: each for name, each in (SETTINGS | model.settings).items() if each is not None}
    config = transformers.AutoConfig.for_model(model.name, **settings)
    config.use_cache = False
    module = transformers.AutoModel.from_config(config).eval()
    words = torch.randint(3, VOCABULARY, (2, TOKENS))
    inputs = {"input_ids": words}
    if model.name == "whisper":
        inputs = {"input_features": torch.randn(2, MEL_BINS, 2 * TOKENS)}
    if model.has_mask:
        inputs["attention_mask"] = torch.ones_like(words)
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = words.flip(1)
    return module, inputs
