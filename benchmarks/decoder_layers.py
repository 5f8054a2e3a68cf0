"""Decoder layers of PyTorch with weights of each format, next to float weights and to reading the weights.

    python -m benchmarks.decoder_layers --layers 12 --rows 1 --output FILE

A layer has the sizes of a small language model: 1024, with 2816 in its gated part, attention over the rows of
the call. All formats of a type and a number of rows are compiled, untuned, and timed interleaved on one
thread, with a loop that reads memory. Ratios above 1 are faster than float weights; ``share_of_read`` is the
bytes of the packed weights by the time, over what the loop reads in a second.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import nn

import tuner.torch
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.runtime.cpu.roofline import MemoryReads
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Call, interleaved_times

HIDDEN, INNER, HEADS = 1024, 2816, 16
FLOAT = "float"
FORMATS = {"int8": (8, 0), "int8-g128": (8, 128), "int4-g32": (4, 32), "int4-g128": (4, 128)}  # bits, group
READS, READ_BYTES = "reads", 256 * 2**20
Linear = Callable[[int, int], nn.Module]  # (outputs, inputs)


class QuantizedLinear(nn.Module):  # type: ignore[misc,unused-ignore]
    """A linear layer without bias: integers with a scale per output, or per output and group of inputs."""

    def __init__(self, dtype: torch.dtype, bits: int, group: int, n: int, k: int) -> None:
        super().__init__()
        limit = 1 << (bits - 1)
        self.register_buffer("integers", torch.randint(-limit, limit, (n, k), dtype=torch.int8))
        scales = (torch.rand(n, k // group if group else 1) + 0.5) / (limit * k**0.5)
        self.register_buffer("scales", scales.to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x times the transpose of the weights."""
        groups = self.integers.to(self.scales.dtype).unflatten(1, (self.scales.shape[1], -1))
        return nn.functional.linear(x, (groups * self.scales.unsqueeze(2)).flatten(1))


class DecoderLayer(nn.Module):  # type: ignore[misc,unused-ignore]
    """Attention over the rows of the call and a gated feed-forward part, each with a norm and a residual."""

    def __init__(self, linear: Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(HIDDEN, dtype=dtype) for _ in range(2))
        self.attention = nn.ModuleList(linear(HIDDEN, HIDDEN) for _ in range(4))
        self.gate = linear(INNER, HIDDEN)
        self.up = linear(INNER, HIDDEN)
        self.down = linear(HIDDEN, INNER)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's result for x, rows x 1024."""
        normed = self.norms[0](x)
        q, k, v = (layer(normed).unflatten(1, (HEADS, -1)).transpose(0, 1) for layer in self.attention[:3])
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention[3](mixed.transpose(0, 1).flatten(1))
        normed = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


def decoder(format_: str, layers: int, dtype: torch.dtype) -> nn.Module:
    """Returns layers with random weights of a format, FLOAT or one of FORMATS."""
    torch.manual_seed(0)
    linear: Linear = lambda n, k: nn.Linear(k, n, bias=False, dtype=dtype)  # noqa: E731
    if format_ != FLOAT:
        linear = partial(QuantizedLinear, dtype, *FORMATS[format_])
    return nn.Sequential(*(DecoderLayer(linear, dtype) for _ in range(layers))).eval()


def measured(formats: list[str], layers: int, rows: int, dtype: str, seconds: float) -> dict[str, Any]:
    """Returns the row of the document for a type and a number of rows: times, ratios to float, errors."""
    type_ = getattr(torch, dtype)
    torch.manual_seed(1)
    x = torch.randn(rows, HIDDEN).to(type_)
    reads = MemoryReads(ThreadTeam(1), READ_BYTES)
    calls: dict[str, Call] = {READS: partial(reads.repeat, 1)}
    weight_bytes, errors = {}, {}
    with torch.no_grad():
        for name in formats:
            module = decoder(name, layers, type_)
            program = tuner.torch.compile(module, (x,))
            calls[name] = partial(program, x)
            function: Any = program.function
            weight_bytes[name] = function.code.weights_bytes
            expected = module(x).double()
            errors[name] = float((program(x).double() - expected).norm() / expected.norm())
        times = interleaved_times(calls, seconds)
    read_s = median_interval(times.pop(READS)).median / reads.bytes
    medians = {name: median_interval(found) for name, found in times.items()}
    return {
        "dtype": dtype,
        "rows": rows,
        "layers": layers,
        "microseconds": {name: round(found.median * 1e6, 1) for name, found in medians.items()},
        "over_float": {name: asdict(paired_ratio(times[FLOAT], found)) for name, found in times.items()},
        "read_gb_per_s": 1e-9 / read_s,
        "share_of_read": {name: size * read_s / medians[name].median for name, size in weight_bytes.items()},
        "weight_bytes": weight_bytes,
        "error_to_eager": errors,
        "rounds": len(times[FLOAT]),
    }


def main(arguments: list[str] | None = None) -> None:
    """Times all types and numbers of rows, prints a line for each, and writes the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 128])
    parser.add_argument("--dtype", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--format", nargs="*", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="of timing, for each type and rows")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for dtype in options.dtype:
        for count in options.rows:
            formats = [FLOAT, *options.format]
            rows.append(measured(formats, options.layers, count, dtype, options.seconds))
            print(text_of(rows[-1]), file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("decoder_layers", settings, rows, {}), options.json, options.output)


def text_of(row: dict[str, Any]) -> str:
    """Returns a row in one line."""
    parts = [f"{row['dtype']}, {row['rows']} rows, {row['layers']} layers:"]
    for name, found in row["microseconds"].items():
        ratio, share = row["over_float"][name]["median"], row["share_of_read"][name]
        parts.append(f"{name} {found:,.0f} us ({ratio:.2f} of float, {share:.0%} of read)")
    return " ".join(parts)


if __name__ == "__main__":
    main()
