"""Quantized weights out of files: of GGUF Q4_0 and Q8_0, and of safetensors GPTQ and AWQ.

    up = tuner.read_quantized("model.gguf", "blk.0.ffn_up.weight")
    kernel = tuner.load_best(up.problem(1, activations="i8"))
    layer = kernel.pack(*up.arrays)

``gguf_files`` reads GGUF. What GPTQ and AWQ have for W (n x k), and how their unsigned numbers
become integers with zero points:

    GPTQ   qweight (k / 8) x n, qzeros groups x (n / 8): 8 nibbles in an i32   w = (u - zero) scale
           from the lowest bits on, a zero less by 1; of 8 bits 4 in an i32
    AWQ    qweight k x (n / 8), qzeros groups x (n / 8): nibble i of an i32    w = (u - zero) scale
           is column 0 2 4 6 1 3 5 7 of eight

Sources: "checkpoint_format" in https://github.com/ModelCloud/GPTQModel; awq/utils/packing_utils.py in
https://github.com/casper-hansen/AutoAWQ
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import WARM, Problem
from tuner.core.quantization import CHANNEL, SCALE_DTYPES
from tuner.core.typed_arguments import typed_arguments
from tuner.models.quantized.gguf_files import GgufFile, package, require_name

Array = npt.NDArray[Any]
Q4_0 = "Q4_0"
Q8_0 = "Q8_0"
GPTQ = "GPTQ"
AWQ = "AWQ"
GGUF_SUFFIX = ".gguf"
SAFETENSORS_SUFFIX = ".safetensors"
WORD_BITS = 32
AWQ_POSITIONS = (0, 4, 1, 5, 2, 6, 3, 7)  # column of eight -> its nibble of a word
SUFFIXES = (".qweight", ".weight")  # of a name in a safetensors file that a layer's name may have
CONFIG_FILES = {
    "quantize_config.json": "",
    "config.json": "quantization_config",
}  # -> the key of the settings
GPTQ_V2: Final = "gptq_v2"  # a checkpoint_format: zeros are stored as they are
CHECKPOINTS = ("", "gptq", GPTQ_V2)
AWQ_VERSIONS = ("", "gemm")


@dataclass(frozen=True, eq=False)
class QuantizedTensor:
    """Weights of a linear layer as ``PackingKernel.pack`` takes them: W[j, l] = (integer - zero point) scale.

    Attributes:
        name: of the tensor or layer in its file.
        format: "Q4_0", "Q8_0", "GPTQ" or "AWQ".
        bits: 4 or 8.
        integers: i8, (n, k), from -8 to 7 for 4 bits.
        scales: f16, bf16 or f32, (n, groups).
        zero_points: i8, (n, groups); None where all are 0.
    """

    name: str
    format: str
    bits: int
    integers: Array
    scales: Array
    zero_points: Array | None = None

    def __repr__(self) -> str:
        n, k = self.integers.shape
        points = ", with zero points" if self.zero_points is not None else ""
        scales = f"{self.scales.dtype} scales of {self.group_size}{points}"
        return f"QuantizedTensor({self.name!r}: {self.format}, {n}x{k}, {self.bits} bits, {scales})"

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Returns the arguments of ``pack``: integers, scales and, if there are any, zero points."""
        points = () if self.zero_points is None else (self.zero_points,)
        return (self.integers, self.scales, *points)

    @property
    def group_size(self) -> int:
        """Returns the number of consecutive elements of k that share a scale."""
        return int(self.integers.shape[1] // self.scales.shape[1])

    def problem(
        self, m: int, dtype: object = "f32", activations: str = "", output: object = "", cache: str = WARM
    ) -> Problem:
        """Returns the problem of multiplying m rows by these weights, to tune and to load.

        Args:
            m: rows of A.
            dtype: of A, "f32" or "bf16".
            activations: "", or "i8": A is quantized at each call, as for ``Matmul``.
            output: type of C, as for ``Matmul``.
            cache: what the caches hold at a call, as for ``Matmul``.

        Returns:
            The problem.

        Raises:
            UsageError: as for ``Matmul``; a group size that is not a multiple of 32.

        Example:
            >>> import numpy as np
            >>> from tuner.models.quantized.quantized_files import QuantizedTensor
            >>> integers, scales = np.zeros((64, 128), np.int8), np.ones((64, 4), np.float16)
            >>> QuantizedTensor("up", "Q4_0", 4, integers, scales).problem(1, activations="i8").key
            'quantized_matmul 1x64x128 f32*i4-g32-f16-a8group nt none'
        """
        n, k = self.integers.shape
        scale_dtype = next(
            name_of_dtype for name_of_dtype in SCALE_DTYPES if DTYPES[name_of_dtype] == self.scales.dtype
        )
        return Matmul(
            m,
            n,
            k,
            dtype,
            output=output,
            cache=cache,
            weights=f"i{self.bits}",
            group_size=CHANNEL if self.scales.shape[1] == 1 else self.group_size,
            scale_dtype=scale_dtype,
            zero_points=self.zero_points is not None,
            activations=activations,
        )

    def dequantized(self) -> npt.NDArray[np.float32]:
        """Returns the weights as numbers.

        Returns:
            An array (n, k) of f32.

        Raises:
            Nothing: the arrays were checked when they were read.

        Example:
            >>> import numpy as np
            >>> from tuner.models.quantized.quantized_files import QuantizedTensor
            >>> integers, scales = np.full((1, 32), 3, np.int8), np.full((1, 1), 0.5, np.float16)
            >>> float(QuantizedTensor("up", "Q4_0", 4, integers, scales).dequantized()[0, 0])
            1.5
        """
        n, k = self.integers.shape
        numbers = self.integers.reshape(n, self.scales.shape[1], -1).astype(np.float32)
        if self.zero_points is not None:
            numbers -= self.zero_points[..., None]
        numbers *= self.scales.astype(np.float32)[..., None]
        return numbers.reshape(n, k)


@typed_arguments
def read_quantized(path: str | Path, name: str) -> QuantizedTensor:
    """Returns the quantized weights of a linear layer in a file, with their integers as they are.

    Args:
        path: a ``.gguf`` file, which the package gguf reads, or a ``.safetensors`` file, which safetensors
            does (both: ``pip install gguf safetensors``). Next to a safetensors file, ``config.json`` or
            ``quantize_config.json`` say how zero points are stored.
        name: of a GGUF tensor, of type Q4_0 or Q8_0: "blk.0.ffn_up.weight"; of a GPTQ or AWQ layer, as its
            tensors' names begin: "model.layers.0.mlp.up_proj".

    Returns:
        The integers, the scales and the zero points; ``problem(m)`` and ``arrays`` are for ``tune``,
        ``load_best`` and ``pack``.

    Raises:
        UsageError: no such file or tensor, another format of file or tensor, columns in the order of their
            activations (GPTQ with desc_act), a missing package.

    Example:
        >>> import tuner
        >>> try:
        ...     tuner.read_quantized("model.gguf", "blk.0.ffn_up.weight")
        ... except tuner.UsageError as error:
        ...     print(error)
        model.gguf: no such file
    """
    file = Path(path)
    readers = {GGUF_SUFFIX: _read_gguf, SAFETENSORS_SUFFIX: _read_safetensors}
    if file.suffix not in readers:
        raise UsageError(f"{file}: found a name that ends in {file.suffix!r}, allowed {', '.join(readers)}")
    if not file.is_file():
        raise UsageError(f"{file}: no such file")
    return readers[file.suffix](file, name)


def _read_gguf(file: Path, name: str) -> QuantizedTensor:
    opened = GgufFile(file)
    type_ = opened.type_of(name)
    if type_ not in (Q4_0, Q8_0):
        allowed = f"{Q4_0}, {Q8_0}"
        hint = f"llama-quantize --pure --allow-requantize {file.name} new.gguf {Q4_0}"
        raise UsageError(f"{file}: {name}: found type {type_}, allowed {allowed}", hint)
    weights = opened.grouped(name)
    return QuantizedTensor(name, type_, weights.bits, weights.integers, weights.scales)


def _read_safetensors(file: Path, name: str) -> QuantizedTensor:
    safetensors = package("safetensors", file)
    layer = name
    for suffix in SUFFIXES:
        layer = layer.removesuffix(suffix)
    try:
        with safetensors.safe_open(str(file), framework="numpy") as opened:
            names = set(opened.keys())
            require_name(f"{layer}.qweight", names, file)
            parts = ("qweight", "qzeros", "scales", "g_idx")
            tensors = {
                part: opened.get_tensor(f"{layer}.{part}") for part in parts if f"{layer}.{part}" in names
            }
    except (safetensors.SafetensorError, OSError) as error:
        raise UsageError(f"{file}: cannot be read as safetensors: {error}") from error
    missing = [part for part in ("qzeros", "scales") if part not in tensors]
    if missing:
        raise UsageError(f"{file}: {layer}: {' and '.join(missing)} missing, as GPTQ and AWQ have")
    try:
        return _of_words(layer, tensors, _settings(file))
    except UsageError as error:
        raise UsageError(f"{file}: {layer}: {error.message}", error.hint) from None


def _settings(file: Path) -> Mapping[str, Any]:
    """Returns the quantization settings in the files next to a model; {} if there are no such files."""
    for name, key in CONFIG_FILES.items():
        try:
            document = json.loads((file.parent / name).read_text())
        except (OSError, ValueError):
            continue
        settings = document.get(key) if key else document
        if isinstance(settings, dict):
            return settings
    return {}


def _of_words(layer: str, tensors: Mapping[str, Array], settings: Mapping[str, Any]) -> QuantizedTensor:
    """Returns the layer of a GPTQ or AWQ file; raises UsageError for a layer of another format."""
    words, zeros, scales = (tensors[part] for part in ("qweight", "qzeros", "scales"))
    if words.dtype != np.int32 or zeros.dtype != np.int32 or words.ndim != 2 or scales.ndim != 2:
        raise UsageError("found tensors of other types than GPTQ and AWQ have, allowed matrices of i32")
    if scales.dtype not in [DTYPES[scale_dtype] for scale_dtype in SCALE_DTYPES]:
        raise UsageError(f"scales: found {scales.dtype}, allowed {', '.join(SCALE_DTYPES)}")
    groups, n = scales.shape
    bits = WORD_BITS * zeros.shape[1] // n
    if bits not in (4, 8):
        raise UsageError(f"found {bits} bits, allowed 4 or 8")
    if words.shape[1] == n:
        unsigned, points = _gptq(words, zeros, bits, settings)
        format_ = GPTQ
    elif words.shape[1] * WORD_BITS // bits == n and bits == 4:
        unsigned, points = _awq(words, zeros, settings)
        format_ = AWQ
    else:
        raise UsageError(
            f"qweight: found {words.shape}, allowed (k / 8, {n}) of GPTQ or (k, {n // 8}) of AWQ"
        )
    k = unsigned.shape[1]
    if points.shape != (n, groups) or k % groups:
        raise UsageError(f"found {k} rows and zero points {points.shape} with {groups} groups of scales")
    order = tensors.get("g_idx")
    if order is not None and not np.array_equal(order, np.arange(k) // (k // groups)):
        line = "its columns are in the order of their activations (desc_act)"
        raise UsageError(line, "quantize with desc_act=False, or with static groups")
    zero_points = np.ascontiguousarray(_signed(points, bits))
    return QuantizedTensor(
        layer,
        format_,
        bits,
        np.ascontiguousarray(_signed(unsigned, bits)),
        np.ascontiguousarray(scales.T),
        zero_points if zero_points.any() else None,
    )


def _gptq(words: Array, zeros: Array, bits: int, settings: Mapping[str, Any]) -> tuple[Array, Array]:
    """Returns (unsigned weights (n, k), unsigned zero points (n, groups)) from GPTQ's i32 words.

    Raises UsageError for an unknown "checkpoint_format" in ``settings``.
    """
    checkpoint = str(settings.get("checkpoint_format", ""))
    if checkpoint not in CHECKPOINTS:
        allowed = ", ".join(filter(None, CHECKPOINTS))
        raise UsageError(f"checkpoint_format: found {checkpoint!r}, allowed {allowed}")
    weights = _fields(words, bits).transpose(1, 0, 2).reshape(words.shape[1], -1)
    points = _fields(zeros, bits).reshape(len(zeros), -1)
    if checkpoint != GPTQ_V2:
        points = (points + 1) & (2**bits - 1)  # a zero of 0 is stored as the greatest number
    return weights, points.T


def _awq(words: Array, zeros: Array, settings: Mapping[str, Any]) -> tuple[Array, Array]:
    """Returns (unsigned weights (n, k), unsigned zero points (n, groups)) from AWQ's i32 words.

    Raises UsageError for a version in ``settings`` other than gemm.
    """
    version = str(settings.get("version", "")).lower()
    if version not in AWQ_VERSIONS:
        raise UsageError(f"version: found {version!r}, allowed gemm")
    weights, points = (
        _fields(packed, 4)[..., AWQ_POSITIONS].reshape(len(packed), -1) for packed in (words, zeros)
    )
    return weights.T, points.T


def _fields(words: Array, bits: int) -> npt.NDArray[np.uint8]:
    """Returns the unsigned numbers of ``bits`` bits in i32 words: [..., number], from the lowest bits on."""
    shifts = np.arange(0, WORD_BITS, bits, dtype=np.uint32)
    numbers = np.ascontiguousarray(words).view(np.uint32)[..., None] >> shifts
    return (numbers & np.uint32(2**bits - 1)).astype(np.uint8)


def _signed(unsigned: Array, bits: int) -> npt.NDArray[np.int8]:
    signed: npt.NDArray[np.int8] = (unsigned.astype(np.int16) - 2 ** (bits - 1)).astype(np.int8)
    return signed
