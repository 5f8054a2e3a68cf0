"""Entries of libraries, bound from the shipped strategies, and the programs that they are applied to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.core.machine import variables_of
from tuner.core.problem import BATCH_MATMUL, Problem
from tuner.models.library.entries import LibraryEntry
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.strategy import Binder, load_strategy

Array = npt.NDArray[np.floating]
DIRECT: dict[str, Value] = {"tile_m": 4, "tile_n": 32, "unroll_k": 1, "loop_order": "ji", "split": "none"}
DIRECT |= dict.fromkeys(("block_m", "block_n", "block_k", "prefetch"), 0)
PACKED: dict[str, Value] = {**DIRECT, "pack_a": 0, "pack_order": "panels"}


def script_of(problem: Problem, threads: int = 1, **knobs: Any) -> str:
    """Returns the bound script of a problem: without packing, or packed where a knob of packing is given."""
    candidate = _candidate(knobs)
    variables = variables_of(problem, describe_machine(), threads)
    return Binder((load_strategy(candidate.strategy),), problem, variables, threads).bind(candidate).text


def _candidate(knobs: Mapping[str, Value]) -> Candidate:
    is_packed = bool({"pack_a", "pack_order"} & knobs.keys())
    strategy = f"matmul_cpu_{'packed' if is_packed else 'direct'}"
    return Candidate.of(strategy, {**(PACKED if is_packed else DIRECT), **knobs})


def entry(problem: Problem, trial: int = 1, **knobs: Any) -> LibraryEntry:
    """Returns an entry with a time that nobody measured."""
    bound = problem, _candidate(knobs), script_of(problem, **knobs), describe_machine()
    return LibraryEntry(*bound, 1, 1e-5, "OpenBLAS", 2e-5, trial)


@dataclass(frozen=True)
class ProgramFunction:
    """A function of a generated program: its text, the shapes of its arguments, what it must compute."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Array]
    taken: int  # contractions that the library must take
    left: int = 0  # contractions that the library must leave alone
    has_result: bool = True  # False: the last argument is written
    kind: type[np.floating] = np.float32  # of its elements


def tensor(shape: tuple[int, ...], dtype: str = "f32") -> str:
    """Returns the type of a tensor as MLIR writes it."""
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"


def product(
    name: str,
    problem: Problem,
    *,
    generic: bool = False,
    accumulates: bool = False,
    on_buffers: bool = False,
    taken: int = 1,
) -> ProgramFunction:
    """Returns a function of one contraction, in the form that the flags say."""
    dtype = problem.dtype
    a, b, c = (tensor(shape, dtype) for shape in (problem.a_shape, problem.b_shape, problem.c_shape))
    start = "%start" if accumulates else "%cleared"
    body = "" if accumulates else _cleared("cleared", c, dtype, "%start" if on_buffers else "")
    body += _generic(problem, start) if generic else _named(problem, start)
    shapes: tuple[tuple[int, ...], ...] = (problem.a_shape, problem.b_shape)
    if on_buffers:
        text = _on_buffers(name, (a, b, c), body)
    else:
        extra = f", %start: {c}" if accumulates else ""
        text = f"func.func @{name}(%a: {a}, %b: {b}{extra}) -> {c} {{\n{body}  return %c : {c}\n}}\n"
    if accumulates or on_buffers:
        shapes += (problem.c_shape,)

    def reference(first: Array, second: Array, before: Array | None = None) -> Array:
        left = first.swapaxes(-1, -2) if problem.layout == "tn" else first
        right = second.swapaxes(-1, -2) if problem.layout == "nt" else second
        made: Array = left @ right
        return made + before if accumulates and before is not None else made

    kind = np.float64 if dtype == "f64" else np.float32
    return ProgramFunction(name, text, shapes, reference, taken, 1 - taken, not on_buffers, kind)


def two_with_relu(name: str, first: Problem, second: Problem) -> ProgramFunction:
    """Returns a function of two matmuls with a relu between them."""
    m, middle, k = first.sizes
    n = second.sizes[1]
    x, up, hidden, down, out = map(tensor, ((m, k), (k, middle), (m, middle), (middle, n), (m, n)))
    text = f"""func.func @{name}(%x: {x}, %up: {up}, %down: {down}) -> {out} {{
{_cleared("f", hidden)}  %h = linalg.matmul ins(%x, %up : {x}, {up}) outs(%f : {hidden}) -> {hidden}
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>],
    iterator_types = ["parallel", "parallel"]}} outs(%h : {hidden}) {{
  ^bb0(%v: f32):
    %p = arith.maximumf %v, %zero_f : f32
    linalg.yield %p : f32
  }} -> {hidden}
{_cleared("g", out)}  %c = linalg.matmul ins(%r, %down : {hidden}, {down}) outs(%g : {out}) -> {out}
  return %c : {out}
}}
"""

    def reference(given: Array, wider: Array, narrower: Array) -> Array:
        made: Array = np.maximum(given @ wider, 0) @ narrower
        return made

    return ProgramFunction(name, text, ((m, k), (k, middle), (middle, n)), reference, taken=2)


def _cleared(name: str, kind: str, dtype: str = "f32", target: str = "") -> str:
    empty = "" if target else f"  %empty_{name} = tensor.empty() : {kind}\n"
    into = target or f"%empty_{name}"
    return f"""  %zero_{name} = arith.constant 0.0 : {dtype}
{empty}  %{name} = linalg.fill ins(%zero_{name} : {dtype}) outs({into} : {kind}) -> {kind}
"""


def _maps(problem: Problem) -> str:
    lead = "b, " if problem.operation == BATCH_MATMUL else ""
    a = "k, m" if problem.layout == "tn" else "m, k"
    b = "n, k" if problem.layout == "nt" else "k, n"
    return ", ".join(f"affine_map<({lead}m, n, k) -> ({lead}{result})>" for result in (a, b, "m, n"))


def _operands(problem: Problem, start: str) -> str:
    shapes = (problem.a_shape, problem.b_shape, problem.c_shape)
    a, b, c = (tensor(shape, problem.dtype) for shape in shapes)
    return f"ins(%a, %b : {a}, {b}) outs({start} : {c})"


def _named(problem: Problem, start: str) -> str:
    maps = f" indexing_maps = [{_maps(problem)}]" if problem.layout != "nn" else ""
    kind = tensor(problem.c_shape, problem.dtype)
    return f"  %c = linalg.{problem.operation}{maps} {_operands(problem, start)} -> {kind}\n"


def _generic(problem: Problem, start: str) -> str:
    lead = '"parallel", ' if problem.operation == BATCH_MATMUL else ""
    dtype = problem.dtype
    return f"""  %c = linalg.generic {{indexing_maps = [{_maps(problem)}],
    iterator_types = [{lead}"parallel", "parallel", "reduction"]}} {_operands(problem, start)} {{
  ^bb0(%x: {dtype}, %y: {dtype}, %s: {dtype}):
    %p = arith.mulf %x, %y : {dtype}
    %t = arith.addf %s, %p : {dtype}
    linalg.yield %t : {dtype}
  }} -> {tensor(problem.c_shape, dtype)}
"""


def _on_buffers(name: str, types: tuple[str, str, str], body: str) -> str:
    a, b, c = types
    buffers = [kind.replace("tensor", "memref") for kind in types]
    return f"""func.func @{name}(%A: {buffers[0]}, %B: {buffers[1]}, %C: {buffers[2]}) {{
  %a = bufferization.to_tensor %A restrict : {buffers[0]} to {a}
  %b = bufferization.to_tensor %B restrict : {buffers[1]} to {b}
  %start = bufferization.to_tensor %C restrict writable : {buffers[2]} to {c}
{body}  bufferization.materialize_in_destination %c in restrict writable %C : ({c}, {buffers[2]}) -> ()
  return
}}
"""
