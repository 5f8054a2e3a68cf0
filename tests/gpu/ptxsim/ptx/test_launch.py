"""The syntax tree of PTX, the order of its basic blocks, launches that fit, and what is refused by name."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.matmuls import DATA, MATMULS
from tests.gpu.ptxsim.ptx.snippets import HEADER as PLAIN_HEADER
from tests.gpu.ptxsim.ptx.snippets import each_lane, fault, run
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.launch import simulate
from tuner.gpu.ptxsim.ptx import syntax_tree
from tuner.gpu.ptxsim.ptx.control_flow_graph import Flow, flow_of
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError, UnsupportedInstruction
from tuner.gpu.ptxsim.ptx.parser import parse
from tuner.gpu.ptxsim.ptx.syntax_tree import Address, Immediate, Instruction, Label, Register, Symbol

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
        syntax_tree.Variable("dyn", "shared", 128, 0, True),
        syntax_tree.Variable("table", "global", 4, 12, False, (1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255)),
    )
    assert kernel.parameters == (
        syntax_tree.Parameter("a", "u64", 8, 8, False),
        syntax_tree.Parameter("map", "b8", 64, 128, True),
        syntax_tree.Parameter("x", "f32", 4, 4, False),
    )
    assert (kernel.max_threads, kernel.required_threads) == ((128, 1, 1), None)
    predicates = (syntax_tree.RegisterBank(name, "pred", None) for name in "pq")
    assert kernel.registers == (syntax_tree.RegisterBank("%r", "b32", 5), *predicates)
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
        ("!%p1", syntax_tree.Negated(Register("%p1"))),
        ("%p1|%p2", syntax_tree.Pair(Register("%p1"), Register("%p2"))),
        ("{%r1, _, 3}", syntax_tree.Vector((Register("%r1"), Register("_"), Immediate(3)))),
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
    assert found.guard == syntax_tree.Guard(Register("%p3"), is_negated=True)
    assert (found.line, found.text) == (6, "@!%p3 st.global.v2.b32 [%rd1], {%r1, %r2}")
    assert found.parts == ("st", "global", "v2", "b32")


def test_names_of_inner_scopes_are_their_own() -> None:
    code = """{ .reg .pred p; WAIT: setp.eq.b32 p, %r1, 0; @p bra WAIT; bra DONE; }
      { .reg .pred p; WAIT: setp.eq.b32 p, %r2, 0; @p bra WAIT; { @p bra WAIT; } } DONE: ret;"""
    items = body(code)
    first, second, done = (item.name for item in items if isinstance(item, Label))
    assert len({first, second, done}) == 3
    branches, compares = (
        [i.operands[0] for i in items if isinstance(i, Instruction) and i.parts[0] == opcode]
        for opcode in ("bra", "setp")
    )
    assert branches == [Symbol(first), Symbol(done), Symbol(second), Symbol(second)]
    assert compares[0] != compares[1]
    assert all(isinstance(operand, Register) for operand in compares)


def test_a_module_names_its_version_and_chip_and_functions_and_debug_sections_are_skipped() -> None:
    module = parse(f"// hello\n/* two\nlines */{HEADER}")
    assert module == syntax_tree.PtxModule("kernel.ptx", "8.3", "sm_90a", (), ())
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


@pytest.mark.drawn(ALL)
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


def test_loops_and_both_sides_of_branches_stand_before_what_follows_them() -> None:
    code = """bra HEAD; AFTER: mov.u32 %r3, 3; ret;
      HEAD: mov.u32 %r1, 1; @%p1 bra AFTER; BODY: mov.u32 %r2, 2; bra HEAD;"""
    found = flow(code)
    first = [block[0] for block in texts(found) if block]
    assert first.index("mov.u32 %r2, 2") < first.index("mov.u32 %r3, 3")
    found = flow("@%p1 bra LEFT; mov.u32 %r1, 1; bra MEET; LEFT: mov.u32 %r1, 2; MEET: ret;")
    order = [block[0] for block in texts(found) if block]
    assert (order[0], order[-1]) == ("@%p1 bra LEFT", "ret")
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
    assert ([block.following for block in found.blocks], found.labels) == ([1, 2, None], {"END": 2})
    assert texts(flow("bra END; mov.u32 %r1, 1; END: ret;")) == [["bra END"], ["ret"]]
    assert texts(flow("mov.u32 %r1, 1;")) == [["mov.u32 %r1, 1"], []]  # a body may end without ret
    with pytest.raises(SimulationError, match=r"line 4: bra NOWHERE: found no such label in k"):
        flow("bra NOWHERE;")


SCALE = text_beside(__file__, "SCALE")  # y = x + x, 32 threads in each block
BLOCKS, THREADS = (4, 1, 1), (32, 1, 1)
X = np.zeros(128, np.float32)
LIMITS = (".maxntid 64, 1, 1", ".reqntid 8, 8")
UP_TO_64, OF_8_X_8 = (SCALE.replace("\n{", f" {each}\n{{", 1) for each in LIMITS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "other"}, "kernel.ptx: found no kernel 'other', allowed snippet"),
        ({"arguments": (X,)}, "kernel snippet: found 1 arguments, allowed 2"),
        ({"arguments": (X, X[::2])}, "argument y: the array is not C-contiguous"),
        ({"grid": (0, 1, 1)}, r"found grid \(0, 1, 1\)"),
        ({"block": (32, 33, 1)}, "found a block of 1056 threads, allowed up to 1024"),
        ({"blocks": ((4, 0, 0),)}, r"blocks: found \(4, 0, 0\), allowed blocks of the grid \(4, 1, 1\)"),
        ({"arguments": (X, b"1234")}, "argument y: found 4 bytes, allowed 8"),
        ({"ptx": UP_TO_64, "block": (65, 1, 1)}, "found a block of 65 threads, allowed up to 64"),
        ({"ptx": OF_8_X_8, "block": (64, 1, 1)}, r"found a block of \(64, 1, 1\), allowed \(8, 8, 1\)"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    launch: dict[str, Any] = {"ptx": SCALE, "kernel": "snippet", "grid": BLOCKS, "block": THREADS}
    with pytest.raises(UsageError, match=message):
        simulate(**launch | {"arguments": (X, X)} | changes)


def test_the_same_array_twice_is_one_buffer_and_arrays_of_any_type_and_shape_are_bytes() -> None:
    x = np.ones(128, np.float32)
    assert simulate(SCALE, "snippet", BLOCKS, THREADS, (x, x)).races == ()
    assert x.tolist() == [2] * 128
    halves = np.ones((4, 8, 8), ml_dtypes.bfloat16)
    simulate(SCALE, "snippet", BLOCKS, THREADS, (halves, halves))  # 1.0078125 is 0x3F813F81's value
    assert halves.astype(float).max() == 2


def test_too_little_shared_memory_is_found() -> None:
    arguments = (*MATMULS[0].inputs(), MATMULS[0].output())
    with fault(Defect.OUT_OF_BOUNDS, match=r"shared address .* allowed up to 16384"):
        simulate(MATMULS[0].ptx, "matmul_kernel", MATMULS[0].grid, MATMULS[0].block, arguments, 16384)


def test_sampled_blocks_leave_the_rest_alone() -> None:
    matmul = MATMULS[0]
    (a, b), c = matmul.inputs(), matmul.output()
    launch = (matmul.ptx, "matmul_kernel", matmul.grid, matmul.block, (a, b, c), 24576)
    found = simulate(*launch, blocks=((1, 0, 0),))
    np.testing.assert_allclose(c[:64, 64:], matmul.expected(a, b)[:64, 64:], atol=2e-5)
    assert (np.isnan(c).sum(), found.blocks) == (3 * 64 * 64, 1)


def test_a_transpose_of_the_gpu_dialect_with_private_and_shared_memory() -> None:
    x, out = np.arange(64 * 64, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    found = simulate((DATA / "transpose.ptx").read_text(), "kernel", (2, 2, 1), (32, 8, 1), (x, out))
    tiles = x.reshape(2, 32, 2, 32)
    expected = tiles.transpose(2, 3, 0, 1) + tiles.transpose(2, 1, 0, 3)  # the tile and what the thread kept
    np.testing.assert_array_equal(out.reshape(2, 32, 2, 32), expected)
    assert (found.hazards, found.conflict_ratio) == ((), 1.0)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "call.uni (%r1), helper, (%r2);",
            r"line \d+: call.uni .*not know a call of helper, only of vprintf",
        ),
        ("tcgen05.fence::before_thread_sync;", "does not know the instruction tcgen05"),
        ("bar.sync 0, 32, 1;", "does not know this instruction with 3 operands"),
        ("brx.idx %r1, table;", "does not know the instruction brx"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%rd2], %r1;", "does not know"),
    ],
)
def test_an_instruction_that_is_not_known_is_named(code: str, message: str) -> None:
    with fault(Defect.UNSUPPORTED, match=message):
        run(code)


def test_a_fence_of_tensor_maps_is_known() -> None:
    run("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;")


@pytest.mark.slow
def test_blocks_wait_for_a_block_that_runs_later() -> None:
    flag = np.zeros(1, np.uint32)
    code = """setp.eq.u32 %q1, %b, 8; @%q1 bra WRITE;
      LOOP: ld.volatile.global.u32 %r1, [%p0]; setp.eq.u32 %q2, %r1, 0; @%q2 bra LOOP;
      ret;
      WRITE: mov.u32 %r1, 7; st.volatile.global.u32 [%p0], %r1;"""
    simulation = run(code, flag, threads=512, grid=(9, 1, 1))  # 4 blocks are simulated at once
    assert flag.tolist() == [7]
    assert not [race for race in simulation.races if race.kind is not Defect.SAME_VALUE]


# What the simulator does not know is refused by name, before anything runs.
OF_LANES = [
    ("setp.foo.u32 %q, %a, 1; mov.b32 %d, 0;", "u4", "u4", "does not know this instruction with"),
    ("setp.lt.f16x2 %q, %a, %a; mov.b32 %d, 0;", "u4", "u4", "does not know this instruction with"),
    ("cvt.rn.e4m3x2.f32 %d, %a, %a;", "f4", "u2", "the simulator does not know"),
    ("cvt.f16.f32 %d, %a;", "f4", "u2", "the simulator does not know"),
    ("cvt.rn.satfinite.f16.f32 %d, %a;", "f4", "u2", "the simulator does not know"),
    ("add.rz.f32 %d, %a, %a;", "f4", "f4", r"does not know \.rz"),
    ("fma.rp.f32 %d, %a, %a, %a;", "f4", "f4", r"does not know \.rp"),
    ("rem.f32 %d, %a, %a;", "f4", "f4", "does not know this instruction for floats"),
    ("add.cc.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("mul24.lo.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("add.sat.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("wmma.sync %d, %a;", "u4", "u4", "does not know this instruction without load, store, mma"),
    ("mov.u32 %d, %clock;", "u4", "u4", "the register %clock, which is not declared"),
    ("mov.u32 %d, %a9;", "u4", "u4", "the register %a9, which is not declared"),
    ("mov.b64 %e, %a;", "u4", "u4", "%a as a value of type .b64"),
    ("mov.u32 %d, nowhere;", "u4", "u4", "the name nowhere, which is not declared"),
    ("mov.b32 {%d, %d, %d}, %a;", "u4", "u4", "3 parts of .b32"),
]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("code", "dtype", "result", "reason"), OF_LANES)
def test_an_instruction_of_lanes(code: str, dtype: str, result: str, reason: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=reason):
        each_lane(code, np.zeros(4, dtype), result=result, declare=".reg .pred %q; .reg .b64 %e;")


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    "code",
    [
        "ld.global.v2.b32 %r1, [%p0];",
        "ld.global.L2::cache_hint.b32 %r1, [%p0], %rd1;",
        "red.global.add.f16x2 [%p0], %r1;",
        "atom.global.add.v2.f32 {%r1, %r2}, [%p0], %r3;",
        "red.global.sub.u32 [%p0], %r1;",
        "cp.async.cg.shared.global [%r1], [%rd1], 8;",
        "cp.async.ca.shared.global [%r1], [%rd1], 32;",
        "cp.async.mbarrier.arrive.shared.b64 [%r1];",
        "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r1}, [%r8];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r8];",
    ],
)
def test_an_access(code: str) -> None:
    with fault(Defect.UNSUPPORTED, match="does not know"):
        run(code, np.zeros(32, np.float32))
