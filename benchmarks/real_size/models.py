"""The models of ``benchmarks.real_size``, with random weights; language models take tokens."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from benchmarks.decoder_layers import QuantizedLinear
from benchmarks.model_zoo.models import MODELS as NETWORK_MODELS
from benchmarks.model_zoo.models import Model

TRANSFORMERS = "transformers"
F32, BF16 = torch.float32, torch.bfloat16
PROMPT, SECOND_PROMPT = 64, 48
TEXT, SECOND_TEXT = 128, 96  # tokens of an encoder
NETWORK_NAMES = ("resnet50", "mobilenet_v3_large", "convnext_tiny", "unet_320")
BITS, GROUP = 4, 32  # of quantized weights: integers of 4 bits with a scale for each group of inputs
WHISPER_BASE = {
    "d_model": 512,
    "encoder_layers": 6,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_attention_heads": 8,  # the model has a decoder, which is not called
}
LLAMA_1B = {  # the shapes of Llama 3.2 1B
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "tie_word_embeddings": True,
}
QWEN3_600M = {  # the shapes of Qwen3-0.6B
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class RealModel:
    """A model of real size. ``inputs``: takes a length in tokens, which a model without tokens leaves out."""

    name: str
    library: str  # that has to be installed
    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]
    length: int = 0  # in tokens; 0: the model takes no tokens
    second_length: int = 0  # compiled after the first one, of the same weights; 0: none
    dtype: torch.dtype = F32
    rows: int = 0  # tokens that a call gives or reads, for tokens per second; 0: no language model

    def build(self) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """Returns the model in evaluation mode, and its inputs. Raises what its library raises."""
        torch.manual_seed(0)
        module = self.make().eval().requires_grad_(False)
        return module, self.inputs(self.length)


class FirstResult(nn.Module):  # type: ignore[misc,unused-ignore]
    """A model of transformers that returns the first of its results."""

    def __init__(self, model: nn.Module, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__()
        self.model = model
        self.options = dict(options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the model's first result for ``x``: tokens, an image, or features of audio."""
        return self.model(x, **self.options)[0]


class CachedStep(nn.Module):  # type: ignore[misc,unused-ignore]
    """One step of a language model: a token after those whose keys and values are given."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the next token; keys and values: layers x 1 x heads x tokens x size."""
        cache = importlib.import_module(TRANSFORMERS).DynamicCache()
        for layer in range(keys.shape[0]):
            cache.update(keys[layer], values[layer], layer)
        return self.model(token, past_key_values=cache, use_cache=True)[0]


def _of_transformers(
    kind: str, name: str, sizes: Mapping[str, Any] = MappingProxyType({}), dtype: torch.dtype = F32
) -> nn.Module:
    """Returns a model with random weights. ``kind``: the factory; ``sizes``: over the configuration's own."""
    library = importlib.import_module(TRANSFORMERS)
    configuration = library.AutoConfig.for_model(name, **sizes)
    configuration.use_cache = False
    return getattr(library, kind).from_config(configuration, dtype=dtype)


def _encoder(name: str, **sizes: Any) -> FirstResult:
    return FirstResult(_of_transformers("AutoModel", name, sizes))


def _whisper_encoder() -> FirstResult:
    return FirstResult(_of_transformers("AutoModel", "whisper", WHISPER_BASE).encoder)


def _decoder(name: str, sizes: Mapping[str, Any], dtype: torch.dtype) -> FirstResult:
    """Returns a language model that gives the logits of the token after its last one."""
    model = _of_transformers("AutoModelForCausalLM", name, sizes, dtype)
    return FirstResult(model, {"logits_to_keep": 1})


def _quantized_decoder(name: str, sizes: Mapping[str, Any]) -> FirstResult:
    """Returns a language model whose layers have weights of 4 bits; its head shares the embedding's."""
    decoder = _decoder(name, sizes, BF16)
    quantize(decoder.model.model.layers)
    return decoder


def quantize(layers: nn.Module) -> None:
    """Replaces each linear layer without a bias by one with random weights of 4 bits, in place."""
    for module in list(layers.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                linear = QuantizedLinear(BF16, BITS, GROUP, child.out_features, child.in_features)
                setattr(module, name, linear)


def _tokens(length: int) -> tuple[torch.Tensor, ...]:
    return (torch.randint(3, 900, (1, length)),)


def _step_of_gpt2(length: int) -> tuple[torch.Tensor, ...]:
    layers, heads, size = 12, 12, 64  # of GPT-2
    cache = (layers, 1, heads, length, size)
    return (torch.randint(3, 900, (1, 1)), torch.randn(cache), torch.randn(cache))


def _network(model: Model) -> RealModel:
    return RealModel(model.name, "torch", model.make, lambda _: model.inputs())


def _language(name: str, make: Callable[[], nn.Module], dtype: torch.dtype) -> RealModel:
    return RealModel(name, TRANSFORMERS, make, _tokens, PROMPT, SECOND_PROMPT, dtype, rows=PROMPT)


def _text(name: str) -> RealModel:
    return RealModel(name, TRANSFORMERS, partial(_encoder, name), _tokens, TEXT, SECOND_TEXT)


GPT2 = partial(_of_transformers, "AutoModelForCausalLM", "gpt2")
MODELS = (
    _text("bert"),
    _text("distilbert"),
    _language("gpt2_prompt", lambda: FirstResult(GPT2(), {"logits_to_keep": 1}), F32),
    RealModel("gpt2_step", TRANSFORMERS, lambda: CachedStep(GPT2()), _step_of_gpt2, PROMPT, rows=1),
    *(_network(model) for model in NETWORK_MODELS if model.name in NETWORK_NAMES),
    RealModel("vit_b_16", TRANSFORMERS, partial(_encoder, "vit"), lambda _: (torch.randn(1, 3, 224, 224),)),
    RealModel("whisper_base_encoder", TRANSFORMERS, _whisper_encoder, lambda _: (torch.randn(1, 80, 3000),)),
    _language("llama_1b_bf16", partial(_decoder, "llama", LLAMA_1B, BF16), BF16),
    _language("llama_1b_int4", partial(_quantized_decoder, "llama", LLAMA_1B), BF16),
    _language("qwen3_600m_bf16", partial(_decoder, "qwen3", QWEN3_600M, BF16), BF16),
)
BY_NAME = MappingProxyType({model.name: model for model in MODELS})
