"""Joins the code of a program's groups into one module, whose function calls them in order.

``@program`` takes one pointer: to an array of pointers, its frame. They are those of the arguments, of the
results, of the packed weights, and of the arena, and a word for the text of an assertion that fails: groups
after that are left out. ``@group_at`` runs one group alone, by its number, to time
it. Groups of equal code are one function. Where groups are divided among threads, each thread runs
``@program_part`` (``linked_parts``).

    llvm.func @program(%frame: !llvm.ptr) {
      llvm.call @call_0(%frame) : (!llvm.ptr) -> ()
      ...
    llvm.func internal @call_0(%frame: !llvm.ptr) {
      %0 = llvm.getelementptr %frame[2] : (!llvm.ptr) -> !llvm.ptr, i64
      %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
      %2 = llvm.getelementptr %1[4096] : (!llvm.ptr) -> !llvm.ptr, i8
      ...
      llvm.call @g0_group(%2, ...) : (!llvm.ptr, ...) -> ()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from tuner.core.element_types import number_type
from tuner.core.errors import CandidateError, Stage
from tuner.core.grouped_program import (
    ARGUMENT,
    GROUP_ENTRY,
    RESULT,
    WEIGHT,
    GroupCode,
    GroupedProgram,
    OpGroup,
    View,
    WeightPacking,
)
from tuner.mlir import interpreter
from tuner.mlir.bindings import Op, ir
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.rewrite.walking import walk_where
from tuner.programs.op_groups.barriers import waits
from tuner.programs.op_groups.linked_parts import SYSTEM_CALLS, call_of, part_texts
from tuner.programs.op_groups.memory_plan import MemoryPlan
from tuner.programs.run.grouped_code import MEMBER_ENTRY, PROGRAM_ENTRY, REPEAT_ENTRY, SINGLE_ENTRY
from tuner.programs.run.packed_weights import WeightPlan

FUNCTION, GLOBAL, POINTER = "llvm.func", "llvm.mlir.global", "!llvm.ptr"
INTERNAL = "#llvm.linkage<internal>"
TEAM_ONCE = "team_once"  # what the exported functions of a team call


@dataclass(frozen=True)
class ProcessorLevel:
    """The processors that code is compiled for: LLVM's name, as of -mcpu, and features beyond it."""

    name: str  # "x86-64-v4"
    features: str = ""  # "+avx512vnni"

    @property
    def attribute(self) -> str:
        """Returns the attribute of a function that LLVM compiles for these processors."""
        return (
            f'["no-builtins", ["target-cpu", "{self.name}"], '
            f'["target-features", "{self.features}"], ["prefer-vector-width", "512"]]'
        )


@dataclass(frozen=True)
class GroupPlaces:
    """A program with the places of all of its buffers."""

    program: GroupedProgram
    memory: MemoryPlan
    weights: WeightPlan

    @property
    def slots(self) -> int:
        """Returns the number of pointers in the frame, before the word for a failed assertion."""
        return len(self.program.arguments) + len(self.program.results) + 2

    def place(self, view: View, packing: WeightPacking | None = None) -> tuple[int, int]:
        """Returns which pointer of the frame a view begins at, and the bytes after it."""
        buffer = self.program.buffers[view.buffer]
        offset = view.offset * number_type(view.type.element).bytes
        if buffer.owner == ARGUMENT:
            return buffer.number, offset
        if buffer.owner == RESULT:
            return len(self.program.arguments) + buffer.number, offset
        if buffer.owner == WEIGHT:
            return self.slots - 2, self.weights.offset_bytes(view, packing)
        start = self.memory.offsets_bytes[view.buffer]
        assert start is not None  # a group touches it
        return self.slots - 1, start + offset


def linked(places: GroupPlaces, codes: Sequence[GroupCode], level: ProcessorLevel) -> str:
    """Returns the module of a program in LLVM dialect, with ``@program`` and ``@group_at``.

    ``codes`` are those of its groups, in order. Raises CandidateError for code that does not parse or has no
    function ``group``.
    """
    names = {
        text: f"g{number}_" for number, text in enumerate(dict.fromkeys(each.llvm_text for each in codes))
    }
    with interpreter.new_context(), ir.Location.unknown():
        whole = ir.Module.create()
        declared: set[str] = set()
        for text, prefix in names.items():
            _add(whole, interpreter.parse(text, "group"), prefix, declared, level)
        asserting = (number for number, code in enumerate(codes) if code.asserts)
        first = next(asserting, len(codes))
        calls = [
            _call_text(number, places, code, names[code.llvm_text], may_have_failed=number >= first)
            for number, code in enumerate(codes)
        ]
        texts = [*_declarations(places, codes, names), *calls, *_entries(codes)]
        if any(code.is_divided for code in codes):
            _add_team(whole, declared, level)
            texts += part_texts(codes, _waits(places, codes))
        text = "\n".join(texts)
        made = interpreter.parse(f"module {{\n{text}\n}}", "program")
        for op in [each.operation for each in made.body.operations]:
            if op.name == FUNCTION and op.attributes["sym_name"].value == SYSTEM_CALLS:
                op.detach_from_parent()
                whole.body.append(op)
            elif op.name == FUNCTION and op.regions[0].blocks:
                op.attributes["passthrough"] = ir.Attribute.parse(level.attribute)
                op.detach_from_parent()
                whole.body.append(op)
        return str(whole)


def _add_team(whole: ir.Module, declared: set[str], level: ProcessorLevel) -> None:
    """Adds the fork and join of a team of threads, for processes that have no compiler."""
    text = (files("tuner.runtime.cpu") / "thread_team.mlir").read_text()
    team = interpreter.parse(text, "team")
    for op in [each.operation for each in team.body.operations]:
        name = op.attributes["sym_name"].value
        if name not in (TEAM_ONCE, MEMBER_ENTRY, REPEAT_ENTRY) and not _is_declaration(op):
            continue
        if EXPORTED in op.attributes:
            del op.attributes[EXPORTED]
        if not _is_declaration(op):
            op.attributes["passthrough"] = ir.Attribute.parse(level.attribute)
        elif name in declared:
            continue
        declared.add(name)
        op.detach_from_parent()
        whole.body.append(op)


def _waits(places: GroupPlaces, codes: Sequence[GroupCode]) -> tuple[bool, ...]:
    groups = places.program.groups
    of_views = [
        [
            places.place(view, packing)
            for view, packing in zip((*group.inputs, *group.outputs), _packings(group, code), strict=True)
        ]
        for group, code in zip(groups, codes, strict=True)
    ]
    return waits(groups, codes, of_views)


def _packings(group: OpGroup, code: GroupCode) -> tuple[WeightPacking | None, ...]:
    return (*code.packings, *[None] * len(group.outputs))


def _add(whole: ir.Module, module: ir.Module, prefix: str, declared: set[str], level: ProcessorLevel) -> None:
    """Moves the functions and data of a group into the whole module, with names that no other group has."""
    ops = [op.operation for op in module.body.operations]
    defined = {op.attributes["sym_name"].value: op for op in ops if not _is_declaration(op)}
    if GROUP_ENTRY not in defined:
        raise CandidateError(Stage.COMPILE, f"a group's code has no function {GROUP_ENTRY!r}")
    for op in walk_where(
        module, lambda each: any(_is_of(each.attributes[name], defined) for name in each.attributes)
    ):
        for name in [each for each in op.attributes if _is_of(op.attributes[each], defined)]:
            op.attributes[name] = ir.FlatSymbolRefAttr.get(prefix + op.attributes[name].value)
    for name, op in defined.items():
        op.attributes["sym_name"] = ir.StringAttr.get(prefix + name)
        op.attributes["linkage"] = ir.Attribute.parse(INTERNAL)
        if op.name == FUNCTION:
            op.attributes["passthrough"] = ir.Attribute.parse(level.attribute)
            if EXPORTED in op.attributes:
                del op.attributes[EXPORTED]
    for op in ops:
        if _is_declaration(op):
            name = op.attributes["sym_name"].value
            if name in declared:
                continue
            declared.add(name)
        op.detach_from_parent()
        whole.body.append(op)


def _is_declaration(op: Op) -> bool:
    return op.name == FUNCTION and not op.regions[0].blocks


def _is_of(attribute: ir.Attribute, names: dict[str, Op]) -> bool:
    return isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in names


def _declarations(places: GroupPlaces, codes: Sequence[GroupCode], names: dict[str, str]) -> list[str]:
    types = {
        names[code.llvm_text]: [*[POINTER] * (len(group.inputs) + len(group.outputs)), *_share_types(code)]
        for group, code in zip(places.program.groups, codes, strict=True)
    }
    asserting = {names[code.llvm_text] for code in codes if code.asserts}
    return [
        f"llvm.func @{prefix}{GROUP_ENTRY}({', '.join(found)})" + f" -> {POINTER}" * (prefix in asserting)
        for prefix, found in types.items()
    ]


def _call_text(
    number: int, places: GroupPlaces, code: GroupCode, prefix: str, *, may_have_failed: bool
) -> str:
    """Returns the function that calls a group with the addresses of its inputs and outputs.

    ``may_have_failed``: whether the group or one before it has assertions.
    """
    group = places.program.groups[number]
    lines, names = [], []
    if may_have_failed:
        # Other threads may read this while the first one writes: they need it after they have waited for it.
        lines += [
            f"  %failed_at = llvm.getelementptr %frame[{places.slots}] : ({POINTER}) -> {POINTER}, i64",
            f"  %failed = llvm.load %failed_at atomic monotonic {{alignment = 8 : i64}} : {POINTER} -> i64",
            "  %zero = llvm.mlir.constant(0 : i64) : i64",
            '  %is_fine = llvm.icmp "eq" %failed, %zero : i64',
            "  llvm.cond_br %is_fine, ^run, ^done",
            "^run:",
        ]
    views = (*group.inputs, *group.outputs)
    for at, (view, packing) in enumerate(zip(views, _packings(group, code), strict=True)):
        slot, offset = places.place(view, packing)
        lines += [
            f"  %slot{at} = llvm.getelementptr %frame[{slot}] : ({POINTER}) -> {POINTER}, i64",
            f"  %base{at} = llvm.load %slot{at} : {POINTER} -> {POINTER}",
            f"  %at{at} = llvm.getelementptr %base{at}[{offset}] : ({POINTER}) -> {POINTER}, i8",
        ]
        names.append(f"%at{at}")
    types = ", ".join([*[POINTER] * len(names), *_share_types(code)])
    names += ["%thread", "%threads"] * code.is_divided
    called = f"llvm.call @{prefix}{GROUP_ENTRY}({', '.join(names)}) : ({types}) ->"
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


def _share_types(code: GroupCode) -> list[str]:
    return ["i64", "i64"] * code.is_divided


def _entries(codes: Sequence[GroupCode]) -> tuple[str, str]:
    """Returns the texts of ``@program``, and of ``@group_at``, which does nothing for a number it lacks.

    Both run on the caller's thread alone.
    """
    only = [
        "  %first = llvm.mlir.constant(0 : i64) : i64\n  %one = llvm.mlir.constant(1 : i64) : i64\n"
        for code in codes
        if code.is_divided
    ][:1]
    each = [f"{call_of(number, code, '%first', '%one')}\n" for number, code in enumerate(codes)]
    cases = ", ".join(f"{number}: ^group{number}" for number in range(len(codes)))
    blocks = "".join(f"^group{number}:\n{call}  llvm.return\n" for number, call in enumerate(each))
    head = "".join(only)
    program = f"llvm.func @{PROGRAM_ENTRY}(%frame: {POINTER}) {{\n{head}{''.join(each)}  llvm.return\n}}"
    single = (
        f"llvm.func @{SINGLE_ENTRY}(%frame: {POINTER}, %number: i32) {{\n{head}"
        f"  llvm.switch %number : i32, ^done [{cases}]\n^done:\n  llvm.return\n{blocks}}}"
    )
    return program, single
