"""A decoder's step of quantized layers: time and memory of an exported program, PyTorch and onnxruntime.

    python -m benchmarks.quantized_model --output benchmarks/results/quantized_model.json

Three blocks of four layers, whose weights are integers of 4 bits with a scale for each 128 of K:
x + o(norm(x)), then x + down(silu(gate(norm(x))) * up(norm(x))). Each way runs in a process of its own, on
one thread of one processor; samples are interleaved, and ratios are of neighbouring samples. The exported
program runs without PyTorch.
"""

import argparse
import importlib.util
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tuner.runtime.cpu.host import processors

GROUP, BLOCKS = 128, 3
SAMPLE_S = 0.3  # a sample: the median of as many calls as fit, at least one
EPSILON = 1e-6
F32, BF16 = "f32", "bf16"
TUNER, EAGER, INT4PACK, ONNX, ONNX_INT8 = WAYS = (
    "tuner, exported",
    "torch, dequantize and linear",
    "torch, _weight_int4pack_mm_for_cpu",
    "onnxruntime MatMulNBits, accuracy level 0",
    "onnxruntime MatMulNBits, accuracy level 4",  # multiplies A as i8
)


@dataclass(frozen=True)
class DecoderSizes:
    """Rows of A, the width of the model and of what is between up and down."""

    rows: int
    width: int
    hidden: int

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Returns (n, k) of each layer: o, gate, up and down of each block."""
        block = ((self.width, self.width), (self.hidden, self.width), (self.hidden, self.width))
        return (*block, (self.width, self.hidden)) * BLOCKS

    def weights(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns a layer's integers, n x k, and scales, n x groups."""
        rng, (n, k) = np.random.default_rng(number), self.layers[number]
        q = rng.integers(-8, 8, (n, k), np.int8)
        return q, ((rng.random((n, k // GROUP), np.float32) + 0.5) * (0.2 / np.sqrt(k))).astype(np.float32)

    def input(self) -> np.ndarray:
        return np.random.default_rng(99).standard_normal((self.rows, self.width), np.float32)


@dataclass(frozen=True)
class TimedWay:
    """A way to run a model; ``ratio``: its time by that of the exported program of the same dtype."""

    way: str
    dtype: str
    rows: int
    median_s: float
    ratio: float
    low: float  # quartiles of the ratios of neighbouring samples
    high: float
    resident_mb: float  # of the process after the first calls
    weights_mb: float  # packed weights and scales
    error: float  # of the result, relative to the greatest magnitude of that of eager mode in f32


def torch_model(sizes: DecoderSizes, dtype: str, *, is_packed: bool) -> Any:
    """Returns the model as a torch module; ``is_packed``: by PyTorch's product of packed nibbles."""
    import torch

    aten, kind = torch.ops.aten, torch.float32 if dtype == F32 else torch.bfloat16

    class Layer(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self, q: Any, scales: Any) -> None:
            super().__init__()
            if is_packed:
                packed = aten._convert_weight_to_int4pack_for_cpu((q + 8).int(), 1)  # noqa: SLF001
                both = torch.stack((scales.t(), torch.zeros_like(scales.t())), -1)
                self.register_buffer("q", packed)
                self.register_buffer("scales", both.to(kind).contiguous())
            else:
                self.register_buffer("q", q)
                self.register_buffer("scales", scales.to(kind))

        def forward(self, x: Any) -> Any:
            if is_packed:
                return aten._weight_int4pack_mm_for_cpu(x, self.q, GROUP, self.scales)  # noqa: SLF001
            n, k = self.q.shape
            numbers = self.q.to(kind).view(n, k // GROUP, GROUP) * self.scales[:, :, None]
            return torch.nn.functional.linear(x, numbers.view(n, k))

    class Model(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            pairs = (map(torch.from_numpy, sizes.weights(at)) for at in range(len(sizes.layers)))
            self.layers = torch.nn.ModuleList([Layer(*pair) for pair in pairs])

        def forward(self, x: Any) -> Any:
            for at in range(0, len(self.layers), 4):
                output, gate, up, down = self.layers[at : at + 4]
                x = x + output(norm(x))
                between = norm(x)
                x = x + down(torch.nn.functional.silu(gate(between)) * up(between))
            return x

    def norm(x: Any) -> Any:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON)

    return Model().eval()


def onnx_model(sizes: DecoderSizes, accuracy: int, file: Path) -> None:
    """Writes the model in ONNX, with nodes ``MatMulNBits``."""
    import onnx
    from onnx import helper, numpy_helper

    nodes: list[Any] = []
    weights = [
        numpy_helper.from_array(np.array(EPSILON, np.float32), "epsilon"),
    ]

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(x: str, at: int) -> str:
        q, scales = sizes.weights(at)
        n, k = q.shape
        unsigned = (q + 8).astype(np.uint8)
        packed = (unsigned[:, ::2] | unsigned[:, 1::2] << 4).reshape(n, k // GROUP, GROUP // 2)
        weights.append(numpy_helper.from_array(packed, f"q{at}"))
        weights.append(numpy_helper.from_array(scales.reshape(-1), f"s{at}"))
        options = {"K": k, "N": n, "bits": 4, "block_size": GROUP, "accuracy_level": accuracy}
        return node("MatMulNBits", x, f"q{at}", f"s{at}", domain="com.microsoft", **options)

    def norm(x: str) -> str:
        mean = node("ReduceMean", node("Mul", x, x), axes=[-1], keepdims=1)
        return node("Div", x, node("Sqrt", node("Add", mean, "epsilon")))

    x = "x"
    for at in range(0, len(sizes.layers), 4):
        x = node("Add", x, linear(norm(x), at))
        between = norm(x)
        gate = linear(between, at + 1)
        product = node("Mul", node("Mul", gate, node("Sigmoid", gate)), linear(between, at + 2))
        x = node("Add", x, linear(product, at + 3))
    kinds = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [sizes.rows, sizes.width])
        for name in ("x", x)
    ]
    graph = helper.make_graph(nodes, "step", kinds[:1], kinds[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(file))


def prepare(folder: Path, sizes: DecoderSizes, way: str, dtype: str) -> None:
    """Writes what a way loads: an exported program or an ONNX model, and eager's result in f32."""
    import torch

    import tuner.torch

    torch.set_num_threads(1)
    with torch.no_grad():
        if way == EAGER:
            x = torch.from_numpy(sizes.input())
            np.save(folder / "expected.npy", torch_model(sizes, F32, is_packed=False)(x).numpy())
        elif way == TUNER:
            x = torch.from_numpy(sizes.input()).to(torch.float32 if dtype == F32 else torch.bfloat16)
            tuner.torch.compile(torch_model(sizes, dtype, is_packed=False), (x,)).export(folder / dtype)
        elif way in (ONNX, ONNX_INT8):
            onnx_model(sizes, 0 if way == ONNX else 4, folder / f"{WAYS.index(way)}.onnx")


def prepare_missing(folder: Path, sizes: DecoderSizes, ways: tuple[tuple[str, str], ...]) -> None:
    """Prepares ways, each in a process of its own, unless ``folder`` has them from an earlier run."""
    done = folder / "prepared"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for way, dtype in ways:
        maker = multiprocessing.get_context("spawn").Process(target=prepare, args=(folder, sizes, way, dtype))
        maker.start()
        maker.join()
    done.touch()


def loaded(folder: Path, sizes: DecoderSizes, way: str, dtype: str) -> tuple[Callable[[], np.ndarray], float]:
    """Returns a call of a way, and the bytes of its weights."""
    given = sizes.input()
    if way == TUNER:
        import ml_dtypes

        import tuner

        program = tuner.load(folder / dtype)
        x = given.astype(np.float32 if dtype == F32 else ml_dtypes.bfloat16)
        bytes_ = (folder / dtype / "weights.npy").stat().st_size
        return lambda: np.asarray(program(x), np.float32), bytes_
    if way in (ONNX, ONNX_INT8):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = folder / f"{WAYS.index(way)}.onnx"
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"x": given})[0], file.stat().st_size
    import torch

    torch.set_num_threads(1)
    module = torch_model(sizes, dtype, is_packed=way == INT4PACK)
    tensor = torch.from_numpy(given).to(torch.float32 if dtype == F32 else torch.bfloat16)

    def call() -> np.ndarray:
        with torch.no_grad():
            result: np.ndarray = module(tensor).float().numpy()
        return result

    return call, sum(each.numel() * each.element_size() for each in module.buffers())


def serve(pipe: Connection, folder: Path, sizes: DecoderSizes, way: str, dtype: str) -> None:
    """Runs a way in its process: sends its memory and its error, then the time of each sample."""
    os.sched_setaffinity(0, processors(1))
    call, weights_bytes = loaded(folder, sizes, way, dtype)
    expected = np.load(folder / "expected.npy")
    error = max(np.abs(call() - expected).max() for _ in range(2)) / np.abs(expected).max()
    _, resident_pages, *_ = Path("/proc/self/statm").read_text().split()
    resident_bytes = int(resident_pages) * os.sysconf("SC_PAGE_SIZE")
    pipe.send((resident_bytes / 2**20, weights_bytes / 2**20, float(error)))
    while pipe.recv():
        pipe.send(_sample_s(call))


def _sample_s(call: Callable[[], np.ndarray]) -> float:
    times: list[float] = []
    while sum(times) < SAMPLE_S:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)  # the first call finds the caches of another process


def compared(
    folder: Path, sizes: DecoderSizes, ways: tuple[tuple[str, str], ...], rounds: int
) -> list[TimedWay]:
    """Times ways, (name, dtype), interleaved; returns a row for each."""
    context, pipes, facts = multiprocessing.get_context("spawn"), [], []
    for way, dtype in ways:
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, folder, sizes, way, dtype), daemon=True)
        process.start()
        facts.append(ours.recv())
        pipes.append(ours)
    samples: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for own, pipe in zip(samples, pipes, strict=True):
            pipe.send(True)
            own.append(pipe.recv())
    for pipe in pipes:
        pipe.send(False)
    bases = {dtype: own for (way, dtype), own in zip(ways, samples, strict=True) if way == TUNER}
    rows = []
    for (way, dtype), own, (resident, weights, error) in zip(ways, samples, facts, strict=True):
        low, middle, high = statistics.quantiles(
            [one / base for one, base in zip(own, bases[dtype], strict=True)], n=4
        )
        median_s = statistics.median(own)
        rows.append(TimedWay(way, dtype, sizes.rows, median_s, middle, low, high, resident, weights, error))
    return rows


def main() -> None:
    """Times the ways at 1 and 16 rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--hidden", type=int, default=11008)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", type=Path, help="a folder for the models, to time them again later")
    add_report_options(parser)
    options = parser.parse_args()
    has_onnx = all(importlib.util.find_spec(each) for each in ("onnx", "onnxruntime"))
    ways = ((EAGER, F32), (TUNER, F32), (TUNER, BF16), (INT4PACK, BF16))
    ways = (*ways, *(((ONNX, F32), (ONNX_INT8, F32)) if has_onnx else ()))
    rows: list[TimedWay] = []
    with tempfile.TemporaryDirectory() as temporary:
        folders = {count: (options.models or Path(temporary)) / f"m{count}" for count in options.rows}
        sizes = {count: DecoderSizes(count, options.width, options.hidden) for count in options.rows}
        for count, folder in folders.items():
            prepare_missing(folder, sizes[count], ways)
        for count, folder in folders.items():
            rows += compared(folder, sizes[count], ways, options.rounds)
    for row in rows:
        ratio = f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"
        print(
            f"M={row.rows} {row.way} {row.dtype}: {1e3 * row.median_s:.1f} ms, {ratio} of tuner's, "
            f"{row.weights_mb:.0f} MB of weights, {row.resident_mb:.0f} MB resident, error {row.error:.1e}"
        )
    settings = {
        "width": options.width,
        "hidden": options.hidden,
        "blocks": BLOCKS,
        "group": GROUP,
        "threads": 1,
        "rounds": options.rounds,
    }
    best = {f"M={row.rows} {row.way} {row.dtype}": round(row.ratio, 3) for row in rows}
    document = report("quantized_model", settings, [asdict(row) for row in rows], best)
    emit(document, options.json, options.output)


if __name__ == "__main__":
    main()
