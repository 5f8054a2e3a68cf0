import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, chip_of
from tuner.mlir.gpu import chip_guards

pytestmark = pytest.mark.mlir


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


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("chip", CHIPS)
def test_an_instruction_passes_only_on_chips_that_have_it(op: str, chip: str) -> None:
    with parsed(f"gpu.module @m {{ llvm.func @k() {{ {op}\n llvm.return }} }}") as module:
        if chip in CASES[op]:
            chip_guards.reject_what_the_chip_lacks(module, chip_of(chip))
            return
        message = rf"^nvvm\.\S+ at line .*: found chip {chip}, allowed "
        with pytest.raises(CandidateError, match=message) as failure:
            chip_guards.reject_what_the_chip_lacks(module, chip_of(chip))
    assert failure.value.stage is Stage.COMPILE
    assert set(failure.value.reason.partition("allowed ")[2].split(", ")) == (
        CASES[op] or {"none that is known"}
    )


FP8 = 'llvm.inline_asm "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 ...;", "" : () -> ()'


def test_inline_ptx_of_8_bit_floats_passes_only_on_chips_that_have_them() -> None:
    text = "gpu.module @m {{ llvm.func @k() {{ {}\n llvm.return }} }}"
    with parsed(text.format(FP8)) as module:
        chip_guards.reject_what_the_chip_lacks(module, chip_of("sm_89"))
        message = (
            r"^llvm\.inline_asm at line .*: found chip sm_86, allowed sm_89, sm_90, sm_90a, sm_100, sm_120$"
        )
        with pytest.raises(CandidateError, match=message):
            chip_guards.reject_what_the_chip_lacks(module, chip_of("sm_86"))
    with parsed(text.format(FP8.replace("e4m3", "f16"))) as module:
        chip_guards.reject_what_the_chip_lacks(module, chip_of("sm_80"))


ONE = "%x = llvm.mlir.constant(1 : i64) : i64\n"
CAST = "%y = builtin.unrealized_conversion_cast %x : i64 to index\n"


@pytest.mark.parametrize(
    ("left", "found"),
    [
        ("%x = llvm.mlir.constant(1.0 : f32) : f32\n %y = math.exp %x : f32", r"math\.exp"),
        ("gpu.barrier", r"gpu\.barrier"),
        (ONE + CAST, r"builtin\.unrealized_conversion_cast"),
        (ONE + CAST + "%z = arith.addi %y, %y : index", r"arith\.addi"),
    ],
)
def test_an_operation_that_was_not_lowered_is_named(left: str, found: str) -> None:
    text = f"gpu.module @m {{ llvm.func @k() {{ {left}\n llvm.return }} }}"
    with (
        parsed(text) as module,
        pytest.raises(CandidateError, match=rf"^{found} at line .*: found no lowering, allowed what lowers"),
    ):
        chip_guards.reject_what_was_not_lowered(module)


def test_code_of_the_host_is_not_device_code() -> None:
    with parsed("func.func @host() { gpu.wait\n return }") as module:
        chip_guards.reject_what_was_not_lowered(module)


def test_a_call_of_a_library_is_named_and_one_of_the_device_passes() -> None:
    text = "gpu.module @m {{ llvm.func @{0}(f32) -> f32 llvm.func @k() {{ llvm.return }} }}"
    with parsed(text.format("vprintf")) as module:
        chip_guards.reject_what_was_not_lowered(module)
    with (
        parsed(text.format("__nv_expf")) as module,
        pytest.raises(
            CandidateError,
            match=r"^llvm\.func at .*: found a call of __nv_expf, allowed what PTX itself has$",
        ),
    ):
        chip_guards.reject_what_was_not_lowered(module)


def test_the_call_of_a_library_is_where_the_message_points() -> None:
    text = text_beside(__file__, "LIBRARY_CALL")
    with (
        parsed(text) as module,
        pytest.raises(CandidateError, match=r"^llvm\.call at line 4:10: found a call"),
    ):
        chip_guards.reject_what_was_not_lowered(module)
