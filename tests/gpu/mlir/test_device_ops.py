"""Ops of kernels: what a chip lacks, elementwise fragments, reductions of blocks and subgroups."""

from collections.abc import Callable

import pytest

from tests.mlir.kernels import changed, counts, parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, chip_of
from tuner.gpu.mlir import fragments, lowering, reductions

HOPPER_ON = {"sm_90", "sm_90a", "sm_100", "sm_120"}
CASES = {
    "nvvm.cluster.arrive": HOPPER_ON,
    "nvvm.cp.async.bulk.commit.group": HOPPER_ON,
    "nvvm.fence.mbarrier.init": HOPPER_ON,
    "nvvm.wgmma.fence.aligned": {"sm_90a"},
    "nvvm.setmaxregister increase 232": {"sm_90a"},
    "nvvm.tcgen05.wait <load>": set(),
    "nvvm.barrier": set(CHIPS),
}


def kernel_of(body: str, declared: str = "") -> str:
    return f"gpu.module @m {{ {declared} llvm.func @k() {{ {body}\n llvm.return }} }}"


def require_chip(op: str, chip: str) -> None:
    changed(lowering.reject_what_the_chip_lacks, kernel_of(op), chip_of(chip))


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("chip", CHIPS)
def test_an_instruction_passes_only_on_chips_that_have_it(op: str, chip: str) -> None:
    if chip in CASES[op]:
        require_chip(op, chip)
        return
    found = rf"^nvvm\.\S+ at line .*: found chip {chip}, allowed "
    with pytest.raises(CandidateError, match=found) as failure:
        require_chip(op, chip)
    assert failure.value.stage is Stage.COMPILE
    allowed = CASES[op] or {"none that is known"}
    assert set(failure.value.reason.partition("allowed ")[2].split(", ")) == allowed


def test_inline_ptx_of_8_bit_floats_passes_only_on_chips_that_have_them() -> None:
    fp8 = 'llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 ...;", "" : () -> ()'
    require_chip(fp8, "sm_89")
    found = "found chip sm_86, allowed sm_89, sm_90, sm_90a, sm_100, sm_120"
    with pytest.raises(CandidateError, match=rf"^llvm\.inline_asm at line .*: {found}$"):
        require_chip(fp8, "sm_86")
    require_chip(fp8.replace("e4m3", "f16"), "sm_80")


ONE = "%x = llvm.mlir.constant(1 : i64) : i64\n"
CAST = "%y = builtin.unrealized_conversion_cast %x : i64 to index\n"
EXP = "%x = llvm.mlir.constant(1.0 : f32) : f32\n %y = math.exp %x : f32"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (kernel_of(EXP), r"math\.exp at .*no lowering"),
        (kernel_of("gpu.barrier"), r"gpu\.barrier at .*no lowering"),
        (kernel_of(ONE + CAST), r"builtin\.unrealized_conversion_cast at .*no lowering"),
        (kernel_of(ONE + CAST + "%z = arith.addi %y, %y : index"), r"arith\.addi at .*no lowering"),
        (kernel_of("", "llvm.func @__nv_expf(f32) -> f32"), r"llvm\.func at .*a call of __nv_expf"),
        (text_beside(__file__, "LIBRARY_CALL"), r"llvm\.call at line 4:10: found a call"),
    ],
)
def test_what_was_not_lowered_is_named_where_it_is(text: str, found: str) -> None:
    allowed = "what lowers" if "lowering" in found else "what PTX itself has$"
    with parsed(text) as module, pytest.raises(CandidateError, match=rf"^{found}.*, allowed {allowed}"):
        lowering.reject_what_was_not_lowered(module)


def test_code_of_the_host_and_functions_of_the_device_pass() -> None:
    for text in ("func.func @host() { gpu.wait\n return }", kernel_of("", "llvm.func @vprintf(f32) -> f32")):
        changed(lowering.reject_what_was_not_lowered, text)


def lowered(kind: str, *types: str, result: str) -> str:
    """Returns a function after the lowering; its operands are fragments of these types."""
    arguments = ", ".join(f"%x{number}: {each}" for number, each in enumerate(types))
    names = ", ".join(f"%x{number}" for number in range(len(types)))
    op = f"gpu.subgroup_mma_elementwise {kind} {names} : ({', '.join(types)}) -> {result}"
    text = f"func.func @f({arguments}) -> {result} {{ %z = {op} return %z : {result} }}"
    return changed(fragments.lower_fragment_elementwise, text)[1]


def fragment(element: str, operand: str = "COp") -> str:
    return f'!gpu.mma_matrix<16x16x{element}, "{operand}">'


@pytest.mark.parametrize(
    ("kind", "element", "operand", "count", "made"),
    [
        ("subf", "f32", "COp", 8, "llvm.fsub %{} : f32"),
        ("minf", "f16", "COp", 4, "llvm.intr.minimum(%{}) : (vector<2xf16>, vector<2xf16>)"),
        ("addf", "f16", "AOp", 8, "llvm.fadd %{} : vector<2xf16>"),
        ("muli", "i32", "COp", 8, "llvm.mul %{} : i32"),
    ],
)
def test_a_register_is_computed_once(kind: str, element: str, operand: str, count: int, made: str) -> None:
    one = fragment(element, operand)
    text = lowered(kind, one, one, result=one)
    before, after = made.split("{}")
    lines = [line for line in text.splitlines() if before in line and after in line]
    assert len(lines) == count
    assert counts(text, "llvm.extractvalue", "subgroup_mma_elementwise") == [2 * count, 0]


def test_an_integer_is_negated_by_taking_it_from_zero() -> None:
    text = lowered("negates", fragment("i32"), result=fragment("i32"))
    assert text.count("llvm.mlir.constant(0 : i32)") == text.count("llvm.sub") == 8


@pytest.mark.parametrize(
    ("kind", "operands", "result", "reason"),
    [
        ("extf", ["f16"], "f32", r"found extf of .*f16.* and .*f32.*, allowed addf, subf"),
        ("addf", ["i32"] * 2, "i32", r"found addf of .*i32, .*, allowed addf, .* of f16 and of f32 sums"),
        ("addi", ["f16"] * 2, "f16", r"found addi of .*f16, .*, allowed .* addi, .* of i32 sums"),
    ],
)
def test_other_kinds_are_refused(kind: str, operands: list[str], result: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        lowered(kind, *map(fragment, operands), result=fragment(result))


# Reductions of blocks and subgroups: the ops they become; their results are in tests/models.
ALL_REDUCE = text_beside(__file__, "ALL_REDUCE")
SHOWN = {reductions.expand_reductions: (ALL_REDUCE,)}
SUBGROUP = ALL_REDUCE.replace("all_reduce add %x uniform {\n    }", "subgroup_reduce add %x ")


def expand(text: str) -> str:
    return changed(reductions.expand_reductions, text)[1]


def test_a_block_reduces_its_warps_and_then_their_results(golden: Callable[[str, str], None]) -> None:
    golden("reductions.mlir", expand(ALL_REDUCE))


def test_threads_that_a_warp_may_lack_are_left_out() -> None:
    unknown = ALL_REDUCE.replace("attributes {known_block_size = array<i32: 64, 1, 1>}", "")
    assert expand(unknown).count("arith.select") == expand(ALL_REDUCE).count("arith.select") + 5
    assert expand(unknown).count("gpu.shuffle idx") == 1


@pytest.mark.parametrize(("cluster", "shuffles"), [("", 5), ("(size = 4)", 2), ("(size = 1)", 0)])
def test_a_subgroup_reduces_by_halves(cluster: str, shuffles: int) -> None:
    text = expand(SUBGROUP.replace("add %x ", f"add %x cluster{cluster} " if cluster else "add %x "))
    assert counts(text, "gpu.shuffle", "gpu.barrier") == [shuffles, 0]


def test_the_region_of_an_all_reduce_combines_and_control_flow_in_it_is_refused() -> None:
    def with_region(body: str) -> str:
        region = f"%x uniform {{\n    ^bb(%l: f32, %r: f32): {body} }}"
        return expand(ALL_REDUCE.replace("add %x uniform {\n    }", region))

    text = with_region("%m = arith.maximumf %l, %r : f32 gpu.yield %m : f32")
    assert counts(text, "arith.maximumf", "gpu.yield") == [10, 0]
    message = r"^gpu.all_reduce at .*: found control flow in its region, allowed a region of one block$"
    with pytest.raises(CandidateError, match=message):
        with_region("cf.br ^next(%l : f32) ^next(%m: f32): gpu.yield %m : f32")
