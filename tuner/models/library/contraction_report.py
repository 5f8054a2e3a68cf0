"""What a library did with each contraction of a program: which entry took it, or why none did.

``contraction_reports`` describes each contraction of a program (``_report``), runs the library's matchers,
and reads the attributes that these put on the ops. ``_why_none`` compares the rest with the entries'
problems.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.mlir import bindings, transform
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import maps_in, walk_where
from tuner.models.library.header import entry_name
from tuner.models.library.transform_module import MARK_SEQUENCE, PREFIX
from tuner.payload.cpu import MAPS

NAMED = (
    *("linalg.matmul", "linalg.batch_matmul", "linalg.batch_reduce_matmul", "linalg.contract", "linalg.dot"),
    *("linalg.matvec", "linalg.vecmat", "linalg.batch_matvec", "linalg.batch_vecmat"),
    *("linalg.mmt4d", "linalg.batch_mmt4d"),
)
CONVOLUTIONS = ("linalg.conv_", "linalg.depthwise_conv_")
MULTIPLY = ("arith.mulf", "arith.muli")
LAYOUTS = {maps: layout for layout, maps in MAPS.items()}


@dataclass(frozen=True)
class ContractionReport:
    """A contraction of a program, and the entry of a library that took it."""

    function: str  # its name; "" outside of functions
    op: str  # as the program has it: "linalg.matmul 64x96x33 f32 nn"
    entry: str  # name of the entry; "": none took it
    reason: str = ""  # why none took it, or could

    @property
    def text(self) -> str:
        """Returns one line: ``@f: linalg.matmul 64x96x33 f32 nn: no entry: ...``."""
        return f"@{self.function}: {self.op}: {self.entry or f'no entry: {self.reason}'}"


def contraction_reports(
    library: str, program: str, problems: tuple[Problem, ...]
) -> tuple[ContractionReport, ...]:
    """Applies the matchers of ``library`` to a copy of ``program``; returns a report per contraction.

    ``problems``: of the library's entries, to say why a contraction has no entry. Raises CandidateError: BIND
    for a text that does not parse or is not a library, COMPILE if a matcher fails.
    """
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(program, "payload")
        before = list(map(_report, _contractions(module)))
        script = transform.parse(library, "library")
        _run(MARK_SEQUENCE, module, script)
        entries = {f"{PREFIX}{entry_name(problem)}" for problem in problems}
        after = [next(iter(entries & set(_attribute_names(op))), "") for op in _contractions(module)]
    reports = []
    for report, entry in zip(before, after, strict=True):
        if entry:
            reports.append(replace(report, entry=entry.removeprefix(PREFIX), reason=""))
        else:
            reports.append(replace(report, reason=report.reason or _why_none(report, problems)))
    return tuple(reports)


def payload_contractions(program: str) -> tuple[ContractionReport, ...]:
    """Returns a report per contraction of a program, without entries.

    Raises CandidateError if the program does not parse.
    """
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(program, "payload")  # kept while its ops are read
        return tuple(map(_report, _contractions(module)))


def _run(sequence: str, module: ir.Module, script: ir.Module) -> None:
    for op in script.body.operations:
        if op.operation.name == "transform.named_sequence" and op.attributes["sym_name"].value == sequence:
            try:
                bindings.interpreter.apply_named_sequence(module, op.operation, script)
            except (ir.MLIRError, ValueError, RuntimeError) as error:
                raise CandidateError(Stage.COMPILE, transform.first_diagnostic(error)) from error
            return
    raise CandidateError(Stage.BIND, f"library: the sequence @{sequence} is missing")


def _contractions(module: ir.Module) -> list[Op]:
    def is_contraction(op: Op) -> bool:
        if op.name != "linalg.generic":
            return op.name in NAMED or op.name.startswith(CONVOLUTIONS)
        iterators = str(op.attributes["iterator_types"])
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        return "reduction" in iterators and len(op.operands) == 3 and any(name in MULTIPLY for name in body)

    return walk_where(module, is_contraction)


def _attribute_names(op: Op) -> Iterator[str]:
    for attribute in op.attributes:
        yield attribute.name if hasattr(attribute, "name") else str(attribute)


def _report(op: Op) -> ContractionReport:
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        parent = parent.parent
    function = "" if parent is None else ir.StringAttr(parent.attributes["sym_name"]).value
    problem, refusal = _described(op)
    return ContractionReport(function, f"{op.name} {problem}".strip(), "", refusal)


def _described(op: Op) -> tuple[str, str]:
    """Returns (the op's problem as text, why no library can take the op); each "" if there is none."""
    if op.name not in ("linalg.matmul", "linalg.batch_matmul", "linalg.generic"):
        return "", "only matmuls and batches of them are matched"
    types = [ir.ShapedType(value.type) for value in op.operands]
    layout = _layout(op)
    if layout is None:
        return "", "its indexing maps are those of no layout (nn, nt, tn)"
    if not all(type_.has_static_shape for type_ in types):
        return "", "it has sizes that are not known when it is compiled"
    (*lead, m, n) = types[2].shape
    k = types[0].shape[-2 if layout == "tn" else -1]
    elements = "/".join(dict.fromkeys(str(type_.element_type) for type_ in types))
    text = f"{'x'.join(map(str, (*lead, m, n, k)))} {elements} {layout}"
    if layout != "nn" and (lead or op.name == "linalg.generic"):
        form = "batches" if lead else "generic ops"
        return text, f"{form} are recognized in layout nn only"
    return text, "" if len(op.results) else "it works on buffers; an entry needs tensors"


def _layout(op: Op) -> str | None:
    """Returns "nn", "nt" or "tn" by an op's indexing maps, whatever the order of its loops; else None."""
    maps = maps_in(op)
    loops = maps[0].n_dims
    if loops not in (3, 4) or len(maps) != 3:
        return None
    names = [f"d{dimension}" for dimension in range(loops)]
    results = [list(map(str, map_.results)) for map_ in maps]
    if loops == 4:
        batch = {dims[0] for dims in results}
        if len(batch) != 1 or not batch <= set(names) or any(len(dims) != 3 for dims in results):
            return None
        names.remove(*batch)
        results = [dims[1:] for dims in results]
    if any(len(dims) != 2 for dims in results):
        return None
    m, n = results[2]
    rest = set(names) - {m, n}
    if len(rest) != 1:  # C is not indexed by two loops: (d0, 0), (d0, d0)
        return None
    (k,) = rest
    letters = {m: "m", n: "n", k: "k"}
    a, b = ("".join(letters.get(dim, "?") for dim in dims) for dims in results[:2])
    return LAYOUTS.get((a, b))


def _why_none(contraction: ContractionReport, problems: Iterable[Problem]) -> str:
    """Returns why no matcher took a contraction that libraries can have: sizes, types or layout."""
    _, sizes, types, layout = contraction.op.split()
    last = "x".join(sizes.split("x")[-3:])
    same_sizes = [problem for problem in problems if problem.shape in (sizes, last)]
    if not same_sizes:
        return f"no entry has the sizes {sizes}"
    layouts = {problem.layout for problem in same_sizes if problem.stored_dtype == types.split("/")[0]}
    if not layouts:
        listed = ", ".join(sorted({problem.stored_dtype for problem in same_sizes}))
        return f"entries of these sizes are of {listed}, not {types}"
    if layout not in layouts:
        return f"entries of these sizes have layout {', '.join(sorted(layouts))}, not {layout}"
    return "its matcher does not take it"
