"""The code of a program around its fusions: calls in order, shares of threads, barriers.

Fusions are compiled as modules of their own, those of equal code once, and linked with it as object files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from tuner.core.dtypes import number_type
from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import ARGUMENT, FUSION_ENTRY, RESULT, WEIGHT, FusedProgram, Fusion, View
from tuner.core.instruction_sets import SPIN_WAIT, Architecture, CodeLevel
from tuner.core.packings import FusionCode, WeightPacking
from tuner.mlir import transform
from tuner.mlir.bindings import Op, ir
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.ir.reading import name_of, ops_in
from tuner.models.fusions.memory_plan import MemoryPlan, view_end
from tuner.models.run.fused_code import (
    ARRIVALS_OFFSET,
    MEMBER_ENTRY,
    PART_ENTRY,
    PROGRAM_ENTRY,
    REPEAT_ENTRY,
    SINGLE_ENTRY,
)
from tuner.models.run.program_weights import WeightPlan

Place = tuple[int, int]  # (index of a pointer in the frame, offset in bytes)
POINTER = "!llvm.ptr"
# Loops before a waiting thread sleeps, some 0.1 to 0.4 ms: after a sleep it may wake on a busy processor.
PAUSES = 8192
SYSTEM_CALLS = "syscall"  # of the C library
# Linux: FUTEX_WAIT and FUTEX_WAKE of one process, as many threads as there are
WAIT_PRIVATE = 128
WAKE_PRIVATE = 129
EVERYBODY = 2**31 - 1
SYSTEM_CALL = f"vararg(!llvm.func<i64 (i64, ...)>) : (i64, {POINTER}, i64, i64, i64) -> i64"
HEAD = f"""llvm.func @{PART_ENTRY}(%part: {POINTER}) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %thread_at = llvm.getelementptr %part[8] : ({POINTER}) -> {POINTER}, i8
  %threads_at = llvm.getelementptr %part[16] : ({POINTER}) -> {POINTER}, i8
  %call = llvm.load %part : {POINTER} -> {POINTER}
  %thread = llvm.load %thread_at : {POINTER} -> i64
  %threads = llvm.load %threads_at : {POINTER} -> i64
  %frame = llvm.load %call : {POINTER} -> {POINTER}
  %arrivals = llvm.getelementptr %call[{ARRIVALS_OFFSET}] : ({POINTER}) -> {POINTER}, i8
  %is_first = llvm.icmp "eq" %thread, %zero : i64"""
FUNCTION = "llvm.func"
INTERNAL = "#llvm.linkage<internal>"
TEAM_ONCE = "team_once"  # what the exported functions of a team call


@dataclass(frozen=True)
class Bytes:
    """Bytes that a fusion reads or writes: [start, stop) from the address in ``slot`` of the frame."""

    slot: int
    start: int
    stop: int
    is_write: bool

    def conflicts(self, other: "Bytes") -> bool:
        """Returns whether the two ranges have a byte in common, and at least one of the ranges is written."""
        is_same = self.slot == other.slot and self.start < other.stop and other.start < self.stop
        return is_same and (self.is_write or other.is_write)


def waits(
    fusions: Sequence[Fusion], codes: Sequence[FusionCode], places: Sequence[Sequence[Place]]
) -> tuple[bool, ...]:
    """Returns, per fusion, whether all threads must meet at a barrier before it.

    Two fusions of which one writes bytes that the other one reads or writes must not run at the same time,
    unless the first thread runs both. Bytes are compared, not buffers, since buffers share memory of the
    arena. ``places`` has, per fusion, the (frame slot, offset) of each input, then of each output.
        fusion 0 (all)    writes %a
        fusion 1 (all)    writes %b           no barrier: it does not touch %a
        fusion 2 (first)  reads %a, writes %c    barrier
        fusion 3 (first)  reads %c, writes %a    none: the same thread
    """
    barriers = []
    pending: list[tuple[bool, tuple[Bytes, ...]]] = []  # since the last barrier: is divided, bytes
    for fusion, code, place in zip(fusions, codes, places, strict=True):
        touched = tuple(_touched(fusion, code, place))
        is_barrier = any(
            (is_divided or code.is_divided)
            and any(touched_before.conflicts(other) for touched_before in earlier for other in touched)
            for is_divided, earlier in pending
        )
        if is_barrier:
            pending = []
        pending.append((code.is_divided, touched))
        barriers.append(is_barrier)
    return tuple(barriers)


def _touched(fusion: Fusion, code: FusionCode, places: Sequence[Place]) -> Iterator[Bytes]:
    views = zip(_views(fusion, code), places, strict=True)
    for index, ((view, packing), (slot, start)) in enumerate(views):
        size = (view_end(view) - view.offset) * number_type(view.type.element).bytes
        is_touched = packing is None and size > 0  # nothing writes packed weights
        yield Bytes(slot, start, start + size * is_touched, is_write=index >= len(fusion.inputs))


def part_texts(codes: Sequence[FusionCode], waits: Sequence[bool], architecture: Architecture) -> list[str]:
    """Returns LLVM-dialect texts: of the barrier, and of ``@program_part``, which each thread runs.

    ``waits``: per fusion, whether all threads meet at a barrier before it.

    A thread waits in a loop until all threads have arrived, and sleeps after 0.1 to 0.4 ms: the thread that
    it waits for may need its processor. Arrivals are counted through the whole call, so no barrier resets
    the count: barrier n waits for n times the number of threads.

        llvm.func @program_part(%part: !llvm.ptr) {
          llvm.call @call_0(%frame, %thread, %threads) : (!llvm.ptr, i64, i64) -> ()
          llvm.call @wait_for_all(%arrivals, %until_1) : (!llvm.ptr, i64) -> ()  // until 1 * %threads arrived
          llvm.cond_br %is_first, ^alone_1, ^after_1
        ^alone_1:
          llvm.call @call_1(%frame) : (!llvm.ptr) -> ()
          llvm.br ^after_1
        ^after_1:
          llvm.return
    """
    lines = [HEAD]
    barriers = 0
    for index, (code, is_barrier) in enumerate(zip(codes, waits, strict=True)):
        if is_barrier:
            barriers += 1
            lines += _wait(index, barriers)
        call = call_of(index, code, "%thread", "%threads")
        if code.is_divided:
            lines.append(call)
            continue
        lines += [
            f"  llvm.cond_br %is_first, ^alone_{index}, ^after_{index}",
            f"^alone_{index}:",
            call,
            f"  llvm.br ^after_{index}",
            f"^after_{index}:",
        ]
    lines += _wait(len(codes), barriers + 1)
    calls = f"llvm.func @{SYSTEM_CALLS}(i64, ...) -> i64"
    return [calls, _wait_text(architecture), "\n".join([*lines, "  llvm.return", "}"])]


def _wait_text(architecture: Architecture) -> str:
    """Returns ``@wait_for_all`` in LLVM dialect: returns once ``until`` arrivals were counted.

    The last thread that arrives wakes the sleepers. A thread counts itself as a sleeper before it sleeps, and
    futex then compares the arrivals again, so that no wake-up is lost.
    """
    return f"""
llvm.func internal @wait_for_all(%arrivals: {POINTER}, %until: i64) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %limit = llvm.mlir.constant({PAUSES} : i64) : i64
  %futex = llvm.mlir.constant({architecture.futex} : i64) : i64
  %wait = llvm.mlir.constant({WAIT_PRIVATE} : i64) : i64
  %wake = llvm.mlir.constant({WAKE_PRIVATE} : i64) : i64
  %everybody = llvm.mlir.constant({EVERYBODY} : i64) : i64
  %low_word = llvm.mlir.constant({2**32 - 1} : i64) : i64
  %sleepers = llvm.getelementptr %arrivals[8] : ({POINTER}) -> {POINTER}, i8
  %before = llvm.atomicrmw add %arrivals, %one seq_cst : {POINTER}, i64
  %now = llvm.add %before, %one : i64
  %is_last = llvm.icmp "sge" %now, %until : i64
  llvm.cond_br %is_last, ^last, ^look(%zero : i64)
^last:
  %asleep = llvm.load %sleepers atomic seq_cst {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_asleep = llvm.icmp "ne" %asleep, %zero : i64
  llvm.cond_br %is_asleep, ^wake, ^done
^wake:
  %woken = llvm.call @{SYSTEM_CALLS}(%futex, %arrivals, %wake, %everybody, %zero) {SYSTEM_CALL}
  llvm.br ^done
^look(%pauses: i64):
  %arrived = llvm.load %arrivals atomic acquire {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_done = llvm.icmp "sge" %arrived, %until : i64
  llvm.cond_br %is_done, ^done, ^pause
^pause:
  llvm.inline_asm has_side_effects "{architecture.spin_wait}", "" : () -> ()
  %more = llvm.add %pauses, %one : i64
  %may_pause = llvm.icmp "slt" %more, %limit : i64
  llvm.cond_br %may_pause, ^look(%more : i64), ^doze
^doze:
  %sleeping = llvm.atomicrmw add %sleepers, %one seq_cst : {POINTER}, i64
  %seen = llvm.load %arrivals atomic seq_cst {{alignment = 8 : i64}} : {POINTER} -> i64
  %is_late = llvm.icmp "sge" %seen, %until : i64
  llvm.cond_br %is_late, ^awake, ^sleep
^sleep:
  %word = llvm.and %seen, %low_word : i64
  %status = llvm.call @{SYSTEM_CALLS}(%futex, %arrivals, %wait, %word, %zero) {SYSTEM_CALL}
  llvm.br ^awake
^awake:
  %left = llvm.atomicrmw sub %sleepers, %one seq_cst : {POINTER}, i64
  llvm.br ^look(%zero : i64)
^done:
  llvm.return
}}"""


def call_of(number: int, code: FusionCode, thread: str, threads: str) -> str:
    """Returns the LLVM-dialect text that calls fusion ``number``.

    ``thread`` and ``threads`` are SSA values: the calling thread's number and the number of threads.
    """
    if not code.is_divided:
        return f"  llvm.call @call_{number}(%frame) : ({POINTER}) -> ()"
    return f"  llvm.call @call_{number}(%frame, {thread}, {threads}) : ({POINTER}, i64, i64) -> ()"


def _wait(number: int, barriers: int) -> list[str]:
    return [
        f"  %barriers_{number} = llvm.mlir.constant({barriers} : i64) : i64",
        f"  %until_{number} = llvm.mul %barriers_{number}, %threads : i64",
        f"  llvm.call @wait_for_all(%arrivals, %until_{number}) : ({POINTER}, i64) -> ()",
    ]


@dataclass(frozen=True)
class FusionPlaces:
    """Where a program's arrays lie in memory: the plan of its temporary buffers, and its packed weights."""

    program: FusedProgram
    memory: MemoryPlan
    weights: WeightPlan

    @property
    def slots(self) -> int:
        """Returns the number of pointers in the frame; the word for a failed assertion follows them."""
        return self._first_weight + len(self.weights.weights) + 1  # the arena

    @property
    def _first_weight(self) -> int:
        return len(self.program.arguments) + len(self.program.results)

    def place(self, view: View, packing: WeightPacking | None = None) -> tuple[int, int]:
        """Returns the frame's slot with the base pointer of a view, and the view's offset from it in bytes.

        The frame is the array of pointers that ``@program`` takes. ``packing``: how a weight is packed.
        """
        buffer = self.program.buffers[view.buffer]
        offset = view.offset * number_type(view.type.element).bytes
        if buffer.owner == ARGUMENT:
            return buffer.number, offset
        if buffer.owner == RESULT:
            return len(self.program.arguments) + buffer.number, offset
        if buffer.owner == WEIGHT:
            number, inside = self.weights.place(view, packing)
            return self._first_weight + number, inside
        start = self.memory.offsets_bytes[view.buffer]
        assert start is not None  # a fusion touches it
        return self.slots - 1, start + offset


def linked(places: FusionPlaces, codes: Sequence[FusionCode], level: CodeLevel) -> str:
    """Returns the module of a program in LLVM dialect, whose ``@program`` calls its fusions in order.

    The frame is an array of pointers: to arguments, results, each packed weight, the arena, and the text of
    an assertion that failed, after which no fusion runs. ``@fusion_at`` runs one fusion alone, to time it.
    Fusions are declared by their ``function_names``. Divided fusions add ``@program_part`` (``part_texts``).

        llvm.func @g0_fusion(!llvm.ptr, ...)
        llvm.func @program(%frame: !llvm.ptr) {
          llvm.call @call_0(%frame) : (!llvm.ptr) -> ()
          ...
        llvm.func internal @call_0(%frame: !llvm.ptr) {
          %0 = llvm.getelementptr %frame[2] : (!llvm.ptr) -> !llvm.ptr, i64
          %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
          %2 = llvm.getelementptr %1[4096] : (!llvm.ptr) -> !llvm.ptr, i8
          ...
          llvm.call @g0_fusion(%2, ...) : (!llvm.ptr, ...) -> ()
    """
    names = function_names(codes)
    with transform.new_context(), ir.Location.unknown():
        whole = ir.Module.create()
        declared: set[str] = set()
        asserting = (index for index, code in enumerate(codes) if code.asserts)
        first = next(asserting, len(codes))
        calls = [
            _call_text(index, places, code, names[code.llvm_text], may_have_failed=index >= first)
            for index, code in enumerate(codes)
        ]
        texts = [*_declarations(places, codes, names), *calls, *_entries(codes)]
        if any(code.is_divided for code in codes):
            _add_team(whole, declared, level)
            fusions = places.program.fusions
            of_views = [
                [places.place(*view) for view in _views(fusion, code)]
                for fusion, code in zip(fusions, codes, strict=True)
            ]
            texts += part_texts(codes, waits(fusions, codes, of_views), level.architecture)
        text = "\n".join(texts)
        made = transform.parse(f"module {{\n{text}\n}}", "program")
        for op in ops_in(made.body):
            _append(whole, op, declared, level)
        return str(whole)


def function_names(codes: Iterable[FusionCode]) -> dict[str, str]:
    """Returns the name of the function of each distinct code in a program, by its text: "g0_fusion"."""
    texts = dict.fromkeys(code.llvm_text for code in codes)
    return {text: f"g{index}_{FUSION_ENTRY}" for index, text in enumerate(texts)}


def fusion_module(code: FusionCode, level: CodeLevel) -> str:
    """Returns the code of a fusion as a module of its own in LLVM dialect, compiled for ``level``.

    Raises CandidateError for code that does not parse or has no function ``fusion``.
    """
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(code.llvm_text, "fusion")
        defined = [op for op in ops_in(module.body) if not _is_declaration(op)]
        if FUSION_ENTRY not in map(name_of, defined):
            raise CandidateError(Stage.COMPILE, f"a fusion's code has no function {FUSION_ENTRY!r}")
        for op in defined:
            if op.name == FUNCTION:
                _compile_for(op, level)
            if name_of(op) != FUSION_ENTRY:
                op.attributes["linkage"] = ir.Attribute.parse(INTERNAL)
        return str(module)


def _add_team(whole: ir.Module, declared: set[str], level: CodeLevel) -> None:
    text = (files("tuner.runtime.cpu") / "thread_team.mlir").read_text()
    team = transform.parse(text.replace(SPIN_WAIT, level.architecture.spin_wait), "team")
    for op in ops_in(team.body):
        if name_of(op) in (TEAM_ONCE, MEMBER_ENTRY, REPEAT_ENTRY) or _is_declaration(op):
            _append(whole, op, declared, level)


def _views(fusion: Fusion, code: FusionCode) -> Iterator[tuple[View, WeightPacking | None]]:
    packings = (*code.packings, *[None] * len(fusion.outputs))
    return zip((*fusion.inputs, *fusion.outputs), packings, strict=True)


def _append(whole: ir.Module, op: Op, declared: set[str], level: CodeLevel) -> None:
    if _is_declaration(op):
        if name_of(op) in declared:
            return
        declared.add(name_of(op))
    elif op.name == FUNCTION:
        _compile_for(op, level)
    op.detach_from_parent()
    whole.body.append(op)


def _compile_for(function: Op, level: CodeLevel) -> None:
    """Sets the processor and the features that LLVM compiles a function for, in place."""
    function.attributes["passthrough"] = ir.Attribute.parse(_passthrough(level))
    if EXPORTED in function.attributes:
        del function.attributes[EXPORTED]


def _passthrough(level: CodeLevel) -> str:
    return (
        f'["no-builtins", ["target-cpu", "{level.name}"], '
        f'["target-features", "{level.features}"], ["prefer-vector-width", "512"]]'
    )


def _is_declaration(op: Op) -> bool:
    return op.name == FUNCTION and not op.regions[0].blocks


def _declarations(places: FusionPlaces, codes: Sequence[FusionCode], names: dict[str, str]) -> list[str]:
    types = {
        names[code.llvm_text]: [*[POINTER] * (len(fusion.inputs) + len(fusion.outputs)), *_share_types(code)]
        for fusion, code in zip(places.program.fusions, codes, strict=True)
    }
    asserting = {names[code.llvm_text] for code in codes if code.asserts}
    return [
        f"llvm.func @{name}({', '.join(arguments)})" + (f" -> {POINTER}" if name in asserting else "")
        for name, arguments in types.items()
    ]


def _call_text(
    number: int, places: FusionPlaces, code: FusionCode, name: str, *, may_have_failed: bool
) -> str:
    fusion = places.program.fusions[number]
    lines = []
    names = []
    if may_have_failed:
        # Atomic: other threads may read this while the first one writes; it counts after the next barrier.
        lines += [
            f"  %failed_at = llvm.getelementptr %frame[{places.slots}] : ({POINTER}) -> {POINTER}, i64",
            f"  %failed = llvm.load %failed_at atomic monotonic {{alignment = 8 : i64}} : {POINTER} -> i64",
            "  %zero = llvm.mlir.constant(0 : i64) : i64",
            '  %is_fine = llvm.icmp "eq" %failed, %zero : i64',
            "  llvm.cond_br %is_fine, ^run, ^done",
            "^run:",
        ]
    for at, view in enumerate(_views(fusion, code)):
        slot, offset = places.place(*view)
        lines += [
            f"  %slot{at} = llvm.getelementptr %frame[{slot}] : ({POINTER}) -> {POINTER}, i64",
            f"  %base{at} = llvm.load %slot{at} : {POINTER} -> {POINTER}",
            f"  %at{at} = llvm.getelementptr %base{at}[{offset}] : ({POINTER}) -> {POINTER}, i8",
        ]
        names.append(f"%at{at}")
    types = ", ".join([*[POINTER] * len(names), *_share_types(code)])
    if code.is_divided:
        names += ["%thread", "%threads"]
    called = f"llvm.call @{name}({', '.join(names)}) : ({types}) ->"
    if code.asserts:
        lines += [
            f"  %text = {called} {POINTER}",
            f"  llvm.store %text, %failed_at atomic monotonic {{alignment = 8 : i64}} : {POINTER}, {POINTER}",
        ]
    else:
        lines.append(f"  {called} ()")
    if "^run:" in lines:
        lines += ["  llvm.br ^done", "^done:"]
    body = "\n".join(lines)
    share = ", %thread: i64, %threads: i64" if code.is_divided else ""
    return f"llvm.func internal @call_{number}(%frame: {POINTER}{share}) {{\n{body}\n  llvm.return\n}}"


def _share_types(code: FusionCode) -> list[str]:
    if code.is_divided:
        return ["i64", "i64"]
    return []


def _entries(codes: Sequence[FusionCode]) -> tuple[str, str]:
    head = ""
    if any(code.is_divided for code in codes):
        head = "  %first = llvm.mlir.constant(0 : i64) : i64\n  %one = llvm.mlir.constant(1 : i64) : i64\n"
    calls = [f"{call_of(index, code, '%first', '%one')}\n" for index, code in enumerate(codes)]
    cases = ", ".join(f"{number}: ^fusion{number}" for number in range(len(codes)))
    blocks = "".join(f"^fusion{index}:\n{call}  llvm.return\n" for index, call in enumerate(calls))
    program = f"llvm.func @{PROGRAM_ENTRY}(%frame: {POINTER}) {{\n{head}{''.join(calls)}  llvm.return\n}}"
    single = (
        f"llvm.func @{SINGLE_ENTRY}(%frame: {POINTER}, %number: i32) {{\n{head}"
        f"  llvm.switch %number : i32, ^done [{cases}]\n^done:\n  llvm.return\n{blocks}}}"
    )
    return program, single
