import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.gpu.target.strategies.points import SIMT, SIMT_LARGE
from tests.mlir.gpu_matmul import gpu_payload, gpu_script
from tests.mlir.kernels import changed, counts, parsed
from tests.support.gpu_point import GpuPoint
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, buffers_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.occupancy import require_launchable
from tuner.gpu.mlir import kernel_passes, lane_moves, lowering, shared_memory, thread_ids
from tuner.gpu.mlir.modules import merge_gpu_modules
from tuner.gpu.mlir.tensor_maps import pass_tensor_maps_by_value, record_tensor_maps
from tuner.gpu.target.compiler import find_ptxas
from tuner.mlir import transform
from tuner.mlir.ir.reading import walk

PROBLEM = Matmul(64, 96, 48)
ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
TWO_KERNELS = text_beside(__file__, "TWO_KERNELS")
AB = (KernelBuffer("a", 256, "input"), KernelBuffer("c", 256, "output"))


@contextmanager
def transformed(problem: Problem, script: str) -> Iterator[Any]:
    with parsed(gpu_payload(problem)) as module:
        transform.apply_script(module, transform.parse(script, "script"))
        yield module


def program_of(module: Any, chip: str, buffers: tuple[KernelBuffer, ...]) -> KernelCode:
    program = lowering.lower_to_program(module, chip_of(chip), buffers)
    assert isinstance(program, KernelCode)
    return program


@functools.cache
def lower_matmul(chip: str = "sm_90") -> KernelCode:
    with transformed(PROBLEM, gpu_script()) as module:
        return program_of(module, chip, buffers_of(PROBLEM))


@functools.cache
def lower(text: str) -> KernelCode:
    with parsed(text) as module:
        return program_of(module, "sm_90", AB)


def test_a_script_becomes_a_program_that_can_be_launched() -> None:
    program = lower_matmul()
    assert program.launches == (Launch("matmul_kernel", (3, 2, 1), (8, 8, 1), 4096, ("a", "b", "c")),)
    assert program.buffers == buffers_of(PROBLEM)
    assert (program.chip, program.binary, program.resources) == ("sm_90", b"", ())
    assert ENTRY.findall(program.text) == ["matmul_kernel"]
    require_launchable(program)
    assert lower_matmul.__wrapped__("sm_90") == program  # the same PTX
    assert ".extern .shared .align 128 .b8 __dynamic_shmem__0[];" in program.text
    assert len(re.findall(r"\.shared \.align", program.text)) == 1  # nothing static next to it


@pytest.mark.drawn(2)
@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_gets_its_own_ptx_which_its_ptxas_takes(chip: str) -> None:
    program = lower_matmul(chip)
    assert f".target {chip}\n" in program.text
    ptxas = find_ptxas()
    if ptxas is None or chip not in ptxas.chips:
        pytest.skip("no ptxas for this chip: extra cuda, or one on PATH")
    assembled = ptxas.assemble(program)
    require_launchable(assembled)
    assert assembled.binary.startswith(b"\x7fELF")
    assert assembled.resources[0].blocks_per_multiprocessor > 0


def test_buffers_above_the_limit_of_the_chip_are_refused() -> None:
    # two tiles of 128 x 256 f32 are 256 KiB: neither MLIR nor ptxas would mind
    problem = Matmul(128, 128, 512)
    found = r"^shared memory of matmul_kernel: found 262144 bytes, allowed 232448 \(at line \d+:\d+\)$"
    large = transformed(problem, gpu_script(block=128, depth=256))
    with large as module, fails(Stage.RESOURCES, found):
        program_of(module, "sm_90", buffers_of(problem))


def test_several_kernels_are_one_ptx_text_and_launched_in_order() -> None:
    program = lower(TWO_KERNELS)
    assert program.launches == (
        Launch("twice_kernel", (2, 1, 1), (32, 1, 1), 0, ("a", "workspace")),
        Launch("twice_kernel_1", (1, 1, 1), (32, 2, 1), 0, ("workspace", "c")),
    )
    assert program.buffers == (*AB, KernelBuffer("workspace", 256, "scratch"))
    assert sorted(ENTRY.findall(program.text)) == ["twice_kernel", "twice_kernel_1"]
    # an unread atomic is relaxed and within the device
    assert re.search(r"(atom|red)(\.relaxed)?(\.gpu)?\.global(\.gpu)?\.add\.f32", program.text)
    assert counts(program.text, "acq_rel", "fence") == [0, 0]


def test_what_no_pass_can_lower_is_the_candidates_failure_in_one_line() -> None:
    left = "linalg.fill ins(%x : f32) outs(%w : memref<64xf32>)\n    gpu.terminator"
    with fails(Stage.COMPILE, r"^linalg\.fill at line .*: found no lowering, allowed what lowers to NVVM$"):
        lower(TWO_KERNELS.replace("gpu.terminator", left, 1))


def test_code_outside_of_the_kernels_is_refused() -> None:
    outside = pytest.raises(CandidateError, match=r"^matmul: found \S+ outside of every gpu\.launch$")
    with parsed(gpu_payload(PROBLEM)) as module, outside:
        program_of(module, "sm_90", buffers_of(PROBLEM))


def test_outlined_kernels_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    _, text, _ = changed(lowering.outline, TWO_KERNELS, chip_of("sm_90"), AB)
    golden("gpu_lowering_two_kernels.mlir", text)


# Passes of one rewrite each: what they change, and what they leave.

NAMES = ("SHUFFLE", "SHARED_GLOBALS", "TWO_MODULES", "GLOBAL_ID")
SHUFFLE, SHARED_GLOBALS, TWO_MODULES, GLOBAL_ID = (text_beside(__file__, name) for name in NAMES)
WIDE = ("i32", "f32", "i64", "f64")
SHOWN: dict[Callable[..., Any], tuple[Any, ...]] = {
    kernel_passes.expand_composed_ops: (GLOBAL_ID,),
    lane_moves.widen_narrow_shuffles: (SHUFFLE,),
    kernel_passes.relax_unused_atomics: (text_beside(__file__, "ATOMICS"),),
    shared_memory.make_shared_memory_external: (text_beside(__file__, "SYMBOLS"), 1024),
    kernel_passes.outline_with_bounds: (text_beside(__file__, "BOUNDS"), lowering.OUTLINE),
    merge_gpu_modules: (TWO_MODULES,),
    thread_ids.expand_warp_ids: (text_beside(__file__, "WARPS"),),
    shared_memory.use_dynamic_shared_globals: (SHARED_GLOBALS,),
}
GIVEN = SHOWN | {
    kernel_passes.sink_undefined_values: (text_beside(__file__, "UNDEFINED"),),
    kernel_passes.widen_printed_integers: (text_beside(__file__, "PRINTED"),),
    record_tensor_maps: (text_beside(__file__, "POINTERS"),),
    pass_tensor_maps_by_value: (text_beside(__file__, "NOTED"),),
}
# Golden file -> the pass, and what it returns.
GOLDEN: dict[str, tuple[Callable[..., Any], int | None]] = {
    "device_atomics": (kernel_passes.relax_unused_atomics, 1),  # not the one whose result is read
    "external_shared_memory": (shared_memory.make_shared_memory_external, 1),  # the symbol of dynamic memory
    "warp_ids": (thread_ids.expand_warp_ids, 2),  # in the order of threads
    "merge_gpu_modules": (merge_gpu_modules, None),  # kernels of all modules move into the first
    "launch_bounds": (kernel_passes.outline_with_bounds, None),  # what the launch says
    "composed_ops": (kernel_passes.expand_composed_ops, None),  # global ids become block and thread ids
    "undefined_values": (kernel_passes.sink_undefined_values, None),  # go where they are used
    "printed_integers": (kernel_passes.widen_printed_integers, None),  # of 32 bits and more stay
    "noted_tensor_maps": (record_tensor_maps, None),  # which arguments are pointers
    "tensor_maps_by_value": (pass_tensor_maps_by_value, None),  # other arguments keep their attributes
}


@pytest.mark.drawn(len(GOLDEN))
@pytest.mark.parametrize("name", GOLDEN)
def test_a_pass_makes_of_a_module(name: str, golden: Callable[[str, str], None]) -> None:
    change, count = GOLDEN[name]
    _, after, result = changed(change, *GIVEN[change])
    assert result == count
    golden(f"{name}.mlir", after)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (kernel_passes.expand_composed_ops, GLOBAL_ID.replace("gpu.global_id", "gpu.thread_id")),
        *((lane_moves.widen_narrow_shuffles, SHUFFLE.replace("f16", kind)) for kind in WIDE),
    ],
)
def test_what_needs_no_pass_stays_as_it_is(change: Callable[..., Any], text: str) -> None:
    before, after, result = changed(change, text)
    assert after == before
    assert not result


@pytest.mark.parametrize("kind", ["i8", "i16", "f16", "bf16"])
def test_shuffles_of_less_than_32_bits_move_32(kind: str) -> None:
    _, text, count = changed(lane_moves.widen_narrow_shuffles, SHUFFLE.replace("f16", kind))
    assert count == 1
    assert "gpu.shuffle xor" in text.replace("  ", " ")
    assert text.count("arith.bitcast") == (0 if kind.startswith("i") else 2)
    assert ": i32" in text.split("gpu.shuffle")[1].splitlines()[0]


def test_a_global_of_no_elements_is_the_start_of_dynamic_shared_memory_of_unknown_size() -> None:
    with parsed(SHARED_GLOBALS) as module:
        shared_memory.use_dynamic_shared_globals(module)
        assert module.operation.verify()
        text, views = str(module), shared_memory.custom_shared_views(walk(module, "gpu.func")[0])
    assert counts(text, "@all", "@tile", "gpu.dynamic_shared_memory") == [0, 2, 1]
    assert views.bytes == 0
    assert "memref.view" in views.unbounded


def test_merged_modules_stay_merged_and_helpers_of_one_name_are_refused() -> None:
    _, text, _ = changed(merge_gpu_modules, TWO_MODULES)
    assert changed(merge_gpu_modules, text)[1] == text
    head = "gpu.func @k() kernel {"
    text = TWO_MODULES.replace(f"{head} gpu.barrier", f"func.func private @k2() {head}")
    text = text.replace("@first {", "@first { func.func private @k2()")
    allowed = "allowed one in all modules"
    with pytest.raises(CandidateError, match=rf"^@second: found a second func\.func @k2, {allowed}$"):
        changed(merge_gpu_modules, text)


@pytest.mark.slow
def test_two_blocks_have_half_of_the_registers_each() -> None:
    program = GpuPoint(Matmul(256, 256, 64), Candidate.of(SIMT, SIMT_LARGE | {"min_blocks": 2})).program()
    assert ".minnctapersm 2" in program.text
    ptxas = find_ptxas()
    if ptxas is not None:
        (resources,) = ptxas.assemble(program).resources
        assert resources.registers <= 128
        assert resources.spilled_bytes == 0
        assert resources.blocks_per_multiprocessor == 2
