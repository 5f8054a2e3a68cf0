"""The syntax tree of PTX, and the order of its basic blocks."""

from typing import Any

import pytest

from tests.simulator.ptx.matmuls import DATA
from tests.simulator.ptx.snippets import HEADER as PLAIN_HEADER
from tests.simulator.ptx.snippets import fault
from tests.texts import text_beside
from tuner.simulator.ptx.defects import Defect, SimulationError
from tuner.simulator.ptx.layout import Flow, flow_of
from tuner.simulator.ptx.parser import parse
from tuner.simulator.ptx.syntax_tree import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Label,
    Negated,
    Pair,
    Parameter,
    PtxModule,
    Register,
    RegisterBank,
    Symbol,
    Variable,
    Vector,
)

HEADER = ".version 8.3\n.target sm_90a, debug\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>;"


def body(code: str) -> tuple[Instruction | Label, ...]:
    return parse(f"{HEADER}.entry k() {{ {REGISTERS} {code} }}").kernels[0].body


def only(code: str) -> Instruction:
    (found,) = body(code)
    assert isinstance(found, Instruction)
    return found


def test_a_kernel_has_parameters_sizes_registers_and_variables() -> None:
    module = parse(text_beside(__file__, "KERNEL"))
    (kernel,) = module.kernels
    assert module.variables == (
        Variable("dyn", "shared", 128, 0, True),
        Variable("table", "global", 4, 12, False, (1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255)),
    )
    assert kernel.parameters == (
        Parameter("a", "u64", 8, 8, False),
        Parameter("map", "b8", 64, 128, True),
        Parameter("x", "f32", 4, 4, False),
    )
    assert (kernel.max_threads, kernel.required_threads) == ((128, 1, 1), None)
    predicates = (RegisterBank(name, "pred", None) for name in "pq")
    assert kernel.registers == (RegisterBank("%r", "b32", 5), *predicates)
    variables = [(each.name, each.space, each.bytes) for each in kernel.variables]
    assert variables == [("bars", "shared", 16), ("depot", "local", 64)]


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r1", Register("%r1")),
        ("%tid.x", Register("%tid.x")),
        ("-7", Immediate(-7)),
        ("0x10U", Immediate(16)),
        ("0f3F800000", Immediate(0x3F800000, is_f32=True)),
        ("0d3FF0000000000000", Immediate(0x3FF0000000000000, is_f64=True)),
        ("name", Symbol("name")),
        ("!%p1", Negated(Register("%p1"))),
        ("%p1|%p2", Pair(Register("%p1"), Register("%p2"))),
        ("{%r1, _, 3}", Vector((Register("%r1"), Register("_"), Immediate(3)))),
        ("[%rd1]", Address(Register("%rd1"))),
        ("[%rd1+16]", Address(Register("%rd1"), 16)),
        ("[%rd1+-16]", Address(Register("%rd1"), -16)),
        ("[%rd1-16]", Address(Register("%rd1"), -16)),
        ("[name+8]", Address(Symbol("name"), 8)),
        ("[64]", Address(Immediate(64))),
        ("[%rd1, {%r1, 2}]", Address(Register("%rd1"), 0, (Register("%r1"), Immediate(2)))),
    ],
)
def test_operands(text: str, operand: Any) -> None:
    assert only(f"op.x {text};").operands == (operand,)


def test_an_instruction_has_its_guard_line_and_text() -> None:
    found = only("\n\n@!%p3 st.global.v2.b32\n   [%rd1], {%r1, // low\n %r2};")
    assert found.guard == Guard(Register("%p3"), is_negated=True)
    assert (found.line, found.text) == (6, "@!%p3 st.global.v2.b32 [%rd1], {%r1, %r2}")
    assert found.parts == ("st", "global", "v2", "b32")


def test_names_of_inner_scopes_are_their_own() -> None:
    code = """{ .reg .pred p; WAIT: setp.eq.b32 p, %r1, 0; @p bra WAIT; bra DONE; }
      { .reg .pred p; WAIT: setp.eq.b32 p, %r2, 0; @p bra WAIT; { @p bra WAIT; } } DONE: ret;"""
    items = body(code)
    labels = [item.name for item in items if isinstance(item, Label)]
    branches = [i.operands[0] for i in items if isinstance(i, Instruction) and i.parts[0] == "bra"]
    assert len(set(labels)) == 3
    first, second, done = labels
    assert branches == [Symbol(first), Symbol(done), Symbol(second), Symbol(second)]
    compares = [i.operands[0] for i in items if isinstance(i, Instruction) and i.parts[0] == "setp"]
    assert compares[0] != compares[1]
    assert all(isinstance(operand, Register) for operand in compares)


def test_a_module_names_its_version_and_chip_and_functions_and_debug_sections_are_skipped() -> None:
    module = parse(f"// hello\n/* two\nlines */{HEADER}")
    assert module == PtxModule("kernel.ptx", "8.3", "sm_90a", (), ())
    (kernel,) = parse(text_beside(__file__, "SKIPPED")).kernels
    assert [item.text for item in kernel.body if isinstance(item, Instruction)] == ["ret"]
    body = parse(text_beside(__file__, "LOCATIONS")).kernels[0].body  # the place that the last .loc says
    assert [each.place for each in body if isinstance(each, Instruction)] == ["", "14:12", ""]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.ptx")), ids=lambda path: path.stem)
def test_every_semicolon_of_a_body_ends_something_that_was_read(path: Any) -> None:
    source = path.read_text()
    (kernel,) = parse(source, path.name).kernels
    inside = source[source.index("\n{\n") :]
    statements = sum(not line.strip().startswith(("//", ".")) for line in inside.split(";")[:-1])
    declared = sum(line.count(";") for line in inside.splitlines() if line.strip().startswith("."))
    read = sum(isinstance(item, Instruction) for item in kernel.body)
    assert read == inside.count(";") - declared
    assert read <= statements + declared


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("module", "1: found 'module', allowed '.version'"),
        (".version 8.0\n.target 90", "2: found '90', allowed a chip"),
        (f"{HEADER}.entry", "4: found the end of the text, allowed a kernel's name"),
        (f"{HEADER}\n§", "5: found '§', allowed PTX"),
        (f"{HEADER}.entry k() {{ ret }}", r"4: found '}', allowed"),
        (f"{HEADER}.entry k() {{ .frob; }}", "found '.frob', allowed an instruction; a directive"),
        (f"{HEADER}.entry k() {{ add.u32 %r1, %r2 %r3; }}", "found '%r3', allowed ','"),
        (f"{HEADER}.entry k() {{ mov.f32 %f1, -0f3F800000; }}", "found '0f3F800000', allowed a decimal"),
        (f"{HEADER}.entry k() {{ add.u32 %r1,", "found the end of the text"),
        (f"{HEADER}.entry k() {{ add.u32 %r1, %r2, 09; }}", "found '09', allowed a whole number"),
        (f"{HEADER}.section .debug_str x", "found 'x', allowed a bracket"),
        (f"{HEADER}.entry k() {{ {{ ret; }}", "found the end of the text"),
        (f"{HEADER}.entry k() .frob {{ ret; }}", "found '.frob', allowed { or .maxntid"),
        (f"{HEADER}.entry k(.param .q32 x) {{ ret; }}", "found '.q32', allowed a type such as .b32"),
        (f"{HEADER}.shared .v2 .b32 x;", "found '.v2', allowed a variable of a plain type"),
        (f"{HEADER}.frob x;", "found '.frob', allowed .entry, .func"),
        (".version 8.0\n.target sm_80\n.address_size 32", "allowed .address_size 64"),
    ],
)
def test_what_is_no_ptx_is_reported_with_file_and_line(source: str, message: str) -> None:
    with fault(Defect.SYNTAX, match=rf"^x\.ptx:.*{message}"):
        parse(source, "x.ptx")


def flow(code: str) -> Flow:
    source = f"{PLAIN_HEADER}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<9>; {code} }}"
    return flow_of(parse(source).kernels[0])


def texts(found: Flow) -> list[list[str]]:
    return [[instruction.text for instruction in block.instructions] for block in found.blocks]


def test_a_loop_stands_before_what_follows_it_wherever_it_is_written() -> None:
    code = """bra HEAD; AFTER: mov.u32 %r3, 3; ret;
      HEAD: mov.u32 %r1, 1; @%p1 bra AFTER; BODY: mov.u32 %r2, 2; bra HEAD;"""
    found = flow(code)
    first = [block[0] for block in texts(found) if block]
    assert first.index("mov.u32 %r2, 2") < first.index("mov.u32 %r3, 3")


def test_both_sides_of_a_branch_stand_before_where_they_meet() -> None:
    found = flow("@%p1 bra LEFT; mov.u32 %r1, 1; bra MEET; LEFT: mov.u32 %r1, 2; MEET: ret;")
    order = [block[0] for block in texts(found) if block]
    assert order[0] == "@%p1 bra LEFT"
    assert order[-1] == "ret"
    assert set(order[1:3]) == {"mov.u32 %r1, 1", "mov.u32 %r1, 2"}


def test_barriers_and_waits_cut_blocks() -> None:
    code = """mov.u32 %r1, 1; bar.sync 0; mov.u32 %r2, 2;
      mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2; mov.u32 %r3, 3; bar.warp.sync -1; ret;"""
    assert texts(flow(code)) == [
        ["mov.u32 %r1, 1", "bar.sync 0"],
        ["mov.u32 %r2, 2"],
        ["mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2"],
        ["mov.u32 %r3, 3", "bar.warp.sync -1", "ret"],
    ]


def test_blocks_know_what_follows_and_what_cannot_be_reached_is_left_out() -> None:
    found = flow("@%p1 bra END; mov.u32 %r1, 1; END: ret;")
    assert [block.following for block in found.blocks] == [1, 2, None]
    assert found.labels == {"END": 2}
    assert texts(flow("bra END; mov.u32 %r1, 1; END: ret;")) == [["bra END"], ["ret"]]
    assert texts(flow("mov.u32 %r1, 1;")) == [["mov.u32 %r1, 1"], []]  # a body may end without ret
    with pytest.raises(SimulationError, match=r"line 4: bra NOWHERE: found no such label in k"):
        flow("bra NOWHERE;")
