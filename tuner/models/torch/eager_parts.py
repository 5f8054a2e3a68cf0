"""Finds fusions that are slower than their operators in eager mode, and keeps such operators in PyTorch.

The operations of a fusion have the names of the graph's nodes that they come from as locations. Consecutive
fusions that share a node form a region, with all of their nodes: a convolution with its padding, batch norm
and ReLU. A region is timed next to its nodes in eager mode, alone, on one thread, with warm caches.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from tuner.core.errors import CandidateError, UsageError
from tuner.core.fusions import SOURCE, Fusion
from tuner.core.programs import ALL, EAGER, LOOPS_LEAST_S, LOOPS_LIMIT, ProgramBaseline
from tuner.models.compile import fusions_in_child
from tuner.models.run.fused_program import FusedFunction
from tuner.models.torch.baselines import AGAIN, OURS, Example, compared_baseline, on_threads
from tuner.models.torch.export import export_module
from tuner.models.torch.graph_export import exported_graph
from tuner.models.torch.graph_outputs import is_view
from tuner.models.torch.lowering import lower_with_locations
from tuner.models.torch.module_parts import ModuleGraph, functional_graph, parted_function
from tuner.models.torch.parted_function import Tensors
from tuner.models.torch.program import TensorProgram, array_of, compiled
from tuner.runtime.timing import Call, before_slice_of, interleaved_times

TRACE = "stack_trace"  # of a node: torch-mlir makes locations of it
REGION_SECONDS = 0.3  # of rounds of one region
PROGRAM_SECONDS = 1.5  # of rounds of whole programs
LEAST_SLICE_S = 1e-4  # a fusion is repeated so long: the call from Python takes some microseconds
SHOWN_OPS = 3
PART = "part"


@dataclass(frozen=True, eq=False)
class Region:
    """Fusions, by their numbers, and the nodes of the graph that these compute."""

    fusions: tuple[int, ...]
    nodes: tuple[Node, ...]

    @property
    def ops(self) -> str:
        """Returns the names of a region's operators, without views: "conv2d, batch_norm and 2 more"."""
        computing = [node for node in self.nodes if not is_view(node)] or self.nodes
        names = [*dict.fromkeys(map(_base, computing))]
        more = f" and {len(names) - SHOWN_OPS} more" if len(names) > SHOWN_OPS else ""
        return ", ".join(names[:SHOWN_OPS]) + more

    @property
    def text(self) -> str:
        """Returns the names of a region's operators, and its fusions: "max_pool2d (g2)", "... (g2 .. g4)"."""
        first = self.fusions[0]
        last = self.fusions[-1]
        return f"{self.ops} ({f'g{first}' if first == last else f'g{first} .. g{last}'})"


def _base(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target)).partition(".")[0]


def regions_of(graph: ModuleGraph, fusions: Sequence[Fusion]) -> tuple[Region, ...]:
    """Returns the regions of a program: sets of fusions and of the graph's nodes that they compute.

    A node that no fusion computes, such as a view, joins the region of a node that reads it; if there is
    none, the region of a node that it reads.
    """
    firsts = _first_fusions(fusions)
    region_of: dict[str, int] = {}  # by the name of a node: the first fusion of its region
    for fusion, first in zip(fusions, firsts, strict=True):
        for name in fusion.sources:
            region_of.setdefault(name, first)
    for nodes, neighbours in ((graph.nodes[::-1], "users"), (graph.nodes, "all_input_nodes")):
        for node in nodes:
            near = (region_of[known.name] for known in getattr(node, neighbours) if known.name in region_of)
            if node.name not in region_of and (region := next(near, None)) is not None:
                region_of[node.name] = region
    return tuple(
        Region(
            tuple(index for index, of_one in enumerate(firsts) if of_one == first),
            tuple(node for node in graph.nodes if region_of.get(node.name) == first),
        )
        for first in dict.fromkeys(firsts)
    )


def _first_fusions(fusions: Sequence[Fusion]) -> list[int]:
    """Returns, per fusion, the index of the first fusion of its region of the program.

    Fusions of one region share an operator, or are a copy and its reader: they are kept or replaced together.
    """
    firsts = [*range(len(fusions))]
    for writer, readers in _readers(fusions).items():
        sources = {*fusions[writer].sources}
        # a copy, which comes from no node, belongs to what reads it first
        for reader in readers if sources else readers[:1]:
            if not sources or sources & {*fusions[reader].sources}:
                low, high = sorted((firsts[writer], firsts[reader]))
                firsts = [low if first == high else first for first in firsts]
    return firsts


def _readers(fusions: Sequence[Fusion]) -> dict[int, list[int]]:
    """Returns {index of a fusion: indices of the later fusions that read a buffer which it writes}."""
    readers: dict[int, list[int]] = {}
    writers: dict[int, list[int]] = {}  # by buffer
    for index, fusion in enumerate(fusions):
        for view in fusion.inputs:
            for writer in writers.get(view.buffer, ()):
                readers.setdefault(writer, []).append(index)
        for view in fusion.outputs:
            writers.setdefault(view.buffer, []).append(index)
    return readers


def sourced_fusions(program: torch.export.ExportedProgram) -> tuple[Fusion, ...]:
    """Returns the fusions of an exported program; their ``sources`` are the names of its graph's nodes."""
    traces = [(node, node.meta.get(TRACE)) for node in program.graph.nodes]
    try:
        for node, _ in traces:
            node.meta[TRACE] = f'File "{SOURCE}{node.name}", line 1, in forward'
        text = export_module(program, lower=lower_with_locations).text
    finally:
        for node, trace in traces:
            node.meta[TRACE] = trace
    return fusions_in_child(text)


@dataclass(frozen=True, eq=False)
class EagerComparison:
    """A program's regions that are slower than their operators in eager mode, each with its measurement."""

    graph: ModuleGraph | None  # None: the operators cannot be run one by one
    slower: tuple[tuple[Region, ProgramBaseline], ...] = ()
    why_unknown: str = ""  # why regions were not compared, or why there is no graph

    @property
    def baselines(self) -> tuple[ProgramBaseline, ...]:
        """Returns the measurements of the slower regions."""
        return tuple(baseline for _, baseline in self.slower)


def compared_with_eager(
    module: torch.nn.Module | torch.export.ExportedProgram, example: Example, program: TensorProgram
) -> EagerComparison:
    """Times each large region of a program next to its operators in eager mode, on one thread.

    Large: of at least a tenth of the program's time, and of LOOPS_LEAST_S. Returns the slower regions;
    ``why_unknown`` and no regions where they cannot be compared.
    """
    graph = None
    try:
        exported = functional_graph(exported_graph(module, example.arguments, example.keywords))
        graph = ModuleGraph.of(exported, program.tensors_of(example.arguments, example.keywords))
        if not isinstance(program.function, FusedFunction):
            raise UsageError(program.why_no_fusions)
        fusions = sourced_fusions(exported)
        if [fusion.ops for fusion in fusions] != [fusion.ops for fusion in program.function.code.fusions]:
            raise UsageError("its fusions are others than those of the graph")
    except (UsageError, CandidateError) as error:
        return EagerComparison(graph, why_unknown=str(error))
    with on_threads(1), torch.no_grad():
        return EagerComparison(graph, tuple(_slower(program.function, graph, regions_of(graph, fusions))))


def _slower(
    function: FusedFunction, graph: ModuleGraph, regions: Sequence[Region]
) -> Iterator[tuple[Region, ProgramBaseline]]:
    call = function.prepare(*map(array_of, graph.tensors))
    function.repeat(call, 1)  # fills the arena, which each fusion alone then reads

    def run(region: Region, times: int) -> None:
        for number in region.fusions:
            function.repeat_fusion(call, number, times)

    times_s: dict[Region, float] = {}
    for region in regions:
        time_s = _least_s(partial(run, region, 1))
        if time_s is not None:
            times_s[region] = time_s
    least_s = max(LOOPS_LEAST_S, LOOPS_LIMIT * sum(times_s.values()))
    large = [
        (region, time_s, *_piece(graph, region))
        for region, time_s in times_s.items()
        if time_s >= least_s and region.nodes
    ]
    values = graph.values([*dict.fromkeys(node for *_, reads in large for node in reads)])
    for region, time_s, operators, reads in large:
        repeats = math.ceil(LEAST_SLICE_S / time_s)
        ours: Call = partial(run, region, repeats)
        eager: Call = partial(operators.forward, *[values[node] for node in reads])
        try:
            timed = interleaved_times({OURS: ours, EAGER: eager, AGAIN: ours}, REGION_SECONDS)
        except CandidateError:  # as in _least_s, after other regions
            continue
        alone = [slice_s / repeats for slice_s in timed[OURS]]
        again = [slice_s / repeats for slice_s in timed[AGAIN]]
        compared = compared_baseline(EAGER, timed[EAGER], alone, again)
        if compared.is_faster:
            yield region, replace(compared, part=region.text)


def _piece(graph: ModuleGraph, region: Region) -> tuple[Any, tuple[Node, ...]]:
    own = {*region.nodes}
    outputs = [node for node in region.nodes if node in graph.results or not own.issuperset(node.users)]
    return graph.piece(region.nodes, list(filter(_is_tensor, outputs)))


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _least_s(run: Callable[[], object]) -> float | None:
    """Returns the least seconds of three calls, after one that is not timed; None if an assertion fails.

    A fusion that runs alone reads what the last whole call left in memory. Other fusions may have overwritten
    its indices since, which its assertions find.
    """
    times_s = []
    try:
        run()
        for _ in range(3):
            start = time.perf_counter()
            run()
            times_s.append(time.perf_counter() - start)
    except CandidateError:
        return None
    return min(times_s)


def with_fallback(
    program: TensorProgram, comparison: EagerComparison, db: str | Path | None, threads: int
) -> tuple[TensorProgram, str]:
    """Returns the program with operators in PyTorch where that is faster, and a line that says so.

    Two splits are tried: the operators of ``comparison.slower`` in PyTorch, and all operators. Where neither
    is faster by more than noise, the result is ``program`` and "". Where operators cannot be run one by one,
    it is ``program`` and the reason.
    """
    graph = comparison.graph
    if graph is None:
        return program, f"no operator was kept in PyTorch: {comparison.why_unknown}"
    candidates: dict[str, tuple[frozenset[Node], str]] = {ALL: (frozenset(graph.nodes), "all operators")}
    if comparison.slower:
        nodes = frozenset(node for region, _ in comparison.slower for node in region.nodes)
        candidates[PART] = (nodes, "; ".join(region.text for region, _ in comparison.slower))
    parts_made = {}
    for name, (nodes, text) in candidates.items():
        with contextlib.suppress(UsageError, CandidateError):  # what is left may not compile by itself
            parts_made[name] = split_program(
                program, graph, nodes, text, partial(compiled_part, db=db, threads=threads)
            )
    ours = partial(program.run, graph.tensors)
    calls: dict[str, Call] = {OURS: ours, AGAIN: ours}
    calls |= {name: partial(split.run, graph.tensors) for name, split in parts_made.items()}
    with on_threads(threads), torch.no_grad():
        timed = interleaved_times(calls, PROGRAM_SECONDS, before_slice=before_slice_of(threads))
    speeds = {}
    for name in parts_made:
        compared = compared_baseline(name, timed[name], timed[OURS], timed[AGAIN])
        if compared.is_faster and compared.speed is not None:
            speeds[name] = compared.speed.median
    if not speeds:
        return program, ""
    best = min(speeds, key=lambda name: speeds[name])
    why = f" ({comparison.why_unknown})" if comparison.why_unknown else ""
    line = f"in PyTorch: {candidates[best][1]}{why}; a call takes {speeds[best]:.2f} of the time"
    return parts_made[best], line


def compiled_part(
    module: torch.nn.Module, tensors: tuple[torch.Tensor, ...], db: str | Path | None, threads: int
) -> TensorProgram:
    """Compiles a part of a module for example tensors; raises UsageError or CandidateError if that fails."""
    return compiled(export_module(module, tensors), db=db, threads=threads)


def split_program(
    program: TensorProgram,
    graph: ModuleGraph,
    in_torch: frozenset[Node],
    text: str,
    compiled: Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], TensorProgram],
) -> TensorProgram:
    """Returns a program that runs the nodes ``in_torch`` by PyTorch, and the others as compiled programs.

    ``compiled`` compiles a module for example tensors; ``text`` names the operators in PyTorch, for messages.
    Raises what ``compiled`` raises: UsageError or CandidateError.
    """

    def run_of(module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> Callable[..., Tensors]:
        return compiled(module, tensors).run

    return program.with_parts(parted_function(graph, in_torch, text, run_of))
