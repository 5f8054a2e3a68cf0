"""``tuner.torch.load_gguf``: a GGUF file as the model that transformers has for its architecture.

The model is transformers' own, so ``generate``, caches and sampling are; only its layers with weights are
others. Each weight of the model has one tensor of the file, by the names that llama.cpp's converter gives,
which the package gguf has:

    model.layers.0.self_attn.q_proj.weight    blk.0.attn_q.weight
"""

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tuner.core.errors import UsageError, unknown_value
from tuner.core.typed_arguments import typed_arguments
from tuner.models.quantized.gguf_files import FLOAT_TYPES, GROUPED, GgufFile, package
from tuner.models.torch.quantized_layers import FewBitEmbedding, FewBitLinear, GroupedWeight

DTYPES: Final = (torch.float32, torch.bfloat16)  # of activations
ROUNDED: Final = "i8"  # activations
PARAMETERS: Final = (".weight", ".bias")
EMBEDDING: Final = "token_embd.weight"
HEAD: Final = "output.weight"
FREQUENCIES: Final = "rope_freqs.weight"  # divisors of rotary frequencies, as Llama 3.1 has
# A key of the metadata, below the architecture's name -> transformers' name for it.
SETTINGS: Final[Mapping[str, str]] = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
# Keys that say what is known already; any other key that is not 0, "" or "none" could change results.
KNOWN: Final = ("vocab_size", "attention.value_length", "rope.dimension_count")
NO_SETTING: Final = (0, "", "none")
HEADS: Final = "attention.head_count"
NEEDED: Final = ("embedding_length", "block_count", HEADS)
# A part of the name of a weight whose rows are rotated -> the key of its number of heads.
ROTATED: Final[Mapping[str, str]] = {"attn_q": HEADS, "attn_k": "attention.head_count_kv"}


@dataclass(frozen=True)
class GgufArchitecture:
    """What a GGUF architecture does to the weights of transformers' model of the same name.

    Attributes:
        pairs_rows: rows of q and k are in the order of the pairs that are rotated together: 0, d / 2, 1, ...
    """

    pairs_rows: bool


ARCHITECTURES: Final[Mapping[str, GgufArchitecture]] = {
    "llama": GgufArchitecture(pairs_rows=True),
    "qwen2": GgufArchitecture(pairs_rows=False),
    "qwen3": GgufArchitecture(pairs_rows=False),
}


@typed_arguments
def load_gguf(path: str | Path, dtype: torch.dtype = torch.float32, activations: str = "") -> Any:
    """Returns transformers' model of a GGUF file, with weights of 4 and 8 bits as they are in the file.

    Matrices of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K stay integers with scales; eager mode
    dequantizes them at each call, a program of tuner does not. F32, F16 and BF16 become ``dtype``, and so do
    other types, such as IQ4_NL, with a warning. A head that the file does not have is that of the embeddings,
    which are held once.

    Args:
        path: a ``.gguf`` file of the architecture llama, qwen2 or qwen3.
        dtype: of activations and of weights that are floats, float32 or bfloat16.
        activations: "i8" rounds the rows that matrices of integers multiply, in groups of 32, as llama.cpp
            does, which is faster; "" does not. Matrices of Q6_K multiply rows as they are.

    Returns:
        The model, for ``generate`` of transformers; its parameters need no gradients.

    Raises:
        UsageError: another file or architecture, a setting or tensor that the model does not have, a missing
            package (``pip install gguf transformers``).

    Example:
        >>> import tuner
        >>> import tuner.torch
        >>> try:
        ...     model = tuner.torch.load_gguf("model.gguf")
        ... except tuner.UsageError as error:
        ...     print(error)
        model.gguf: no such file
    """
    path = Path(path)
    if dtype not in DTYPES:
        raise unknown_value("dtype", str(dtype), tuple(map(str, DTYPES)))
    if activations not in ("", ROUNDED):
        raise unknown_value("activations", activations, (ROUNDED,))
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    file = GgufFile(path)
    architecture = str(file.metadata("general.").get("architecture", ""))
    if architecture not in ARCHITECTURES:
        allowed = ", ".join(ARCHITECTURES)
        raise UsageError(f"{path}: found architecture {architecture!r}, allowed {allowed}")
    model = _model_without_weights(file, architecture)
    fill_from_gguf(model, file, architecture, dtype, rounds_x=activations == ROUNDED)
    return model


def _model_without_weights(file: GgufFile, architecture: str) -> Any:
    """Returns transformers' model on the meta device, but for its rotary frequencies."""
    transformers = package("transformers", file.path)
    config = transformers.AutoConfig.for_model(architecture, **_settings(file, architecture))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    rotary = type(model.model.rotary_emb)(config)  # its buffers are in no file
    if FREQUENCIES in file.names:
        divisors = torch.from_numpy(file.floats(FREQUENCIES).astype(np.float32))
        for frequencies in rotary.buffers():
            frequencies /= divisors
    model.model.rotary_emb = rotary
    return model


def _settings(file: GgufFile, architecture: str) -> dict[str, Any]:
    """Returns the arguments of transformers' configuration; raises UsageError for a setting it has not."""
    metadata = file.metadata(f"{architecture}.")
    for key, value in metadata.items():
        if key not in (*SETTINGS, *KNOWN) and value not in NO_SETTING:
            raise UsageError(f"{file.path}: {architecture}.{key}: found {value!r}, which is not supported")
        if key in SETTINGS and not isinstance(value, int | float):
            raise UsageError(f"{file.path}: {architecture}.{key}: found {value!r}, allowed a number")
    for key in NEEDED:
        if key not in metadata:
            raise UsageError(f"{file.path}: {architecture}.{key} is missing")
    settings = {SETTINGS[key]: value for key, value in metadata.items() if key in SETTINGS}
    size = settings["hidden_size"] // settings["num_attention_heads"]
    settings.setdefault("head_dim", size)
    settings.setdefault("num_key_value_heads", settings["num_attention_heads"])
    for key in ("attention.value_length", "rope.dimension_count"):
        found = metadata.get(key, settings["head_dim"])
        if found != settings["head_dim"]:
            allowed = f"the size of a head, {settings['head_dim']}"
            raise UsageError(f"{file.path}: {architecture}.{key}: found {found}, allowed {allowed}")
    tokens = file.metadata("tokenizer.ggml.")
    return {
        **settings,
        "vocab_size": file.shape(EMBEDDING)[0],
        "tie_word_embeddings": HEAD not in file.names,
        "attention_bias": "blk.0.attn_output.bias" in file.names,
        "bos_token_id": tokens.get("bos_token_id"),
        "eos_token_id": tokens.get("eos_token_id"),
        "pad_token_id": tokens.get("padding_token_id"),
    }


def fill_from_gguf(
    model: nn.Module, file: GgufFile, architecture: str, dtype: torch.dtype, *, rounds_x: bool = False
) -> None:
    """Gives a causal language model the weights of a file, in place; linear layers become quantized ones.

    ``model``: with the names of transformers' modules and parameters, whose own data are not read;
    ``rounds_x``: quantized layers round the rows that they multiply to i8. Raises
    UsageError where a parameter has no tensor, a tensor has no parameter, or sizes differ.
    """
    filling = _Filling(file, architecture, dtype, rounds_x=rounds_x)
    for name, module in list(model.named_modules()):
        if list(module.parameters(recurse=False)):
            filling.fill(model, name, module)
    filling.finish()
    model.requires_grad_(requires_grad=False)
    model.eval()


class _Filling:
    """Fills a model from a file; of each tensor it makes one weight, which several modules may have."""

    def __init__(self, file: GgufFile, architecture: str, dtype: torch.dtype, *, rounds_x: bool) -> None:
        self._file = file
        self._rounds_x = rounds_x
        self._dtype = dtype
        self._metadata = file.metadata(f"{architecture}.")
        self._pairs_rows = ARCHITECTURES[architecture].pairs_rows
        gguf = package("gguf", file.path)
        kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
        self._names = gguf.get_tensor_name_map(kinds[architecture], self._metadata["block_count"])
        self._groups: dict[str, GroupedWeight] = {}
        self._parameters: dict[str, nn.Parameter] = {}

    def fill(self, model: nn.Module, name: str, module: nn.Module) -> None:
        """Gives one module its parameters, or replaces it in ``model`` by a quantized layer."""
        own = dict(module.named_parameters(recurse=False))
        tensors = {parameter: self._tensor_of(f"{name}.{parameter}") for parameter in own}
        for parameter, tensor in tensors.items():
            found, allowed = self._file.shape(tensor), tuple(own[parameter].shape)
            if found != allowed:
                line = f"found {found}, allowed {allowed}, as of {name}.{parameter}"
                raise UsageError(f"{self._file.path}: {tensor}: {line}")
        weight = tensors["weight"]
        is_quantized = self._file.type_of(weight) in GROUPED
        if is_quantized and isinstance(module, nn.Embedding):
            model.set_submodule(name, FewBitEmbedding(self._groups_of(weight), self._dtype))
        elif is_quantized and isinstance(module, nn.Linear):
            bias = None
            if "bias" in tensors:
                bias = self._parameter_of(tensors["bias"])
            model.set_submodule(name, FewBitLinear(self._groups_of(weight), bias, rounds_x=self._rounds_x))
        else:
            for parameter, tensor in tensors.items():
                setattr(module, parameter, self._parameter_of(tensor))

    def finish(self) -> None:
        """Raises UsageError for a tensor that no module has; warns of other types, which became floats."""
        for name in self._file.names:
            if name not in (FREQUENCIES, *self._groups, *self._parameters):
                raise UsageError(f"{self._file.path}: {name}: the model has no such weight")
        types = Counter(map(self._file.type_of, self._parameters))
        for type_ in sorted(types.keys() - FLOAT_TYPES.keys()):
            kept = str(self._dtype).removeprefix("torch.")
            line = f"{self._file.path}: weights of type {type_} are held as {kept}: {types[type_]} tensors"
            warnings.warn(line, stacklevel=5)  # 5: the caller of ``load_gguf``, in ``typed_arguments``

    def _tensor_of(self, parameter: str) -> str:
        name = self._names.get_name(parameter, PARAMETERS)
        if name == HEAD and HEAD not in self._file.names:
            name = EMBEDDING
        if name not in self._file.names:
            raise UsageError(f"{self._file.path}: {name or parameter} is missing, for {parameter}")
        return str(name)

    def _groups_of(self, name: str) -> GroupedWeight:
        if name not in self._groups:
            weight = self._file.grouped(name)
            order = self._order(name)
            if order is not None:
                weight = weight.rows(order)
            self._groups[name] = GroupedWeight(weight)
        return self._groups[name]

    def _parameter_of(self, name: str) -> nn.Parameter:
        if name not in self._parameters:
            numbers = self._file.floats(name)
            order = self._order(name)
            if order is not None:
                numbers = numbers[order]
            self._parameters[name] = nn.Parameter(tensor_of(numbers).to(self._dtype), requires_grad=False)
        return self._parameters[name]

    def _order(self, name: str) -> npt.NDArray[np.int64] | None:
        """Returns which row of the file's tensor each row of the model's is; None where they are the same."""
        part = name.split(".")[-2]
        if not self._pairs_rows or part not in ROTATED:
            return None
        heads = self._metadata.get(ROTATED[part], self._metadata[HEADS])
        pairs = np.arange(self._file.shape(name)[0]).reshape(heads, -1, 2)
        return pairs.swapaxes(1, 2).reshape(-1)


def tensor_of(numbers: npt.NDArray[Any]) -> torch.Tensor:
    """Returns a copy of an array as a tensor; ml_dtypes' bfloat16, which torch does not know, by its bits."""
    if numbers.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(np.array(numbers.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(numbers))
