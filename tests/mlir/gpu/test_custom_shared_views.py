"""The bytes of shared memory that a kernel addresses itself, and those that its launches ask for."""

import re

import pytest

from tests.mlir.kernels import SHARED, kernel, parsed
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

dynamic_shared_memory = pytest.importorskip("tuner.mlir.gpu.shared_memory")
constant_arguments = pytest.importorskip("tuner.mlir.gpu.kernel_passes")

BYTES = "memref<?xi8, #gpu.address_space<workgroup>>"
FLOATS = "memref<64xf32, #gpu.address_space<workgroup>>"
ALLOCATED = (f"%c = memref.alloc() : {SHARED} memref.store %v, %c[%i] : {SHARED}",)
VIEWS = (
    "%c0 = arith.constant 0 : index %c256 = arith.constant 256 : index",
    f"%own = gpu.dynamic_shared_memory : {BYTES}",
    f"%low = memref.view %own[%c0][] : {BYTES} to {FLOATS}",
    f"%high = memref.view %own[%c256][] : {BYTES} to {FLOATS}",
    f"memref.store %v, %low[%i] : {FLOATS} memref.store %v, %high[%i] : {FLOATS}",
)
AT_RUN_TIME = tuple(line.replace("%own[%c256]", "%own[%i]") for line in VIEWS)
SIZE = "dynamic_shared_memory_size %size"


def views_only(*body: str, launch: str = "") -> str:
    """Returns the kernel of these lines without the two buffers that others have."""
    return re.sub(r"%[ab] = memref.alloc.*", "", kernel(*body, launch=launch))


def asking(body: tuple[str, ...], size: int | None) -> str:
    """Returns a module whose launch asks for a constant, or for what the host function's argument says."""
    text = views_only(*body, launch=SIZE)
    if size is None:
        return text.replace("@host(%g: memref<256xf32>", "@host(%g: memref<256xf32>, %size: i32")
    return text.replace("%c1 =", f"%size = arith.constant {size} : i32\n    %c1 =", 1)


def rewritten(text: str) -> tuple[str, int]:
    with parsed(text) as module:
        blocks = dynamic_shared_memory.use_dynamic_shared_memory(module, 4096)
        assert module.operation.verify()
        return str(module), blocks[0].bytes


def test_a_launch_that_asks_for_nothing_gets_what_the_views_need() -> None:
    text, size = rewritten(views_only(*VIEWS))
    assert size == 512
    assert "dynamic_shared_memory_size %c512_i32" in text


def test_allocations_come_after_the_views() -> None:
    text, size = rewritten(views_only(*VIEWS, *ALLOCATED))
    assert size == 512 + 1024
    assert re.search(r"memref\.view %\w+\[%c512\w*\]\[\] : .* to memref<256xf32", text)


def test_a_launch_that_asks_for_less_is_refused() -> None:
    message = (
        r"launch of k at .*: found dynamic_shared_memory_size 511, allowed at least 512 bytes,"
        r" which memref\.view at line 19:.* needs"
    )
    with pytest.raises(CandidateError, match=f"^{message}$") as failure:
        rewritten(asking(VIEWS, 511))
    assert failure.value.stage is Stage.RESOURCES


def test_a_place_that_is_not_constant_needs_a_size() -> None:
    found = "found a place that is not constant and no dynamic_shared_memory_size"
    with pytest.raises(
        CandidateError, match=f"^memref.view at .*: {found}, allowed a launch of k that says the size$"
    ):
        rewritten(views_only(*AT_RUN_TIME))
    assert rewritten(asking(AT_RUN_TIME, 1000))[1] == 1000


def test_a_size_that_only_the_run_knows_is_passed_on() -> None:
    text, _ = rewritten(asking(VIEWS, None))
    assert "dynamic_shared_memory_size %arg1" in text


def test_buffers_come_in_front_of_memory_whose_size_only_the_run_knows() -> None:
    text, size = rewritten(asking((*VIEWS, *ALLOCATED), None))
    assert size == 1024 + 512
    assert re.search(
        r"%(\w+) = arith.addi %c1024_i32, %arg1 : i32\n.*\n?.*dynamic_shared_memory_size %\1", text
    )
    assert re.search(r"memref\.view %\w+\[%c1024\w*\]\[%\w+\] : .* to memref<\?xi8", text)


def test_constants_of_every_launch_are_brought_into_the_kernel() -> None:
    passed = views_only(*(line.replace("%own[%c256]", "%own[%shift]") for line in VIEWS))
    passed = passed.replace("@k(%g: memref<256xf32>", "@k(%g: memref<256xf32>, %shift: index")
    one = passed.replace("args(%g : memref<256xf32>", "args(%g : memref<256xf32>, %c256 : index")
    launch = one[one.index("    gpu.launch_func") : one.index("    return")]
    two = one.replace(launch, launch + launch.replace("%c256 :", "%c1 :"))
    for text, expected in ((one, 1), (two, 0)):
        with parsed(text) as module:
            assert constant_arguments.propagate_constant_arguments(module) == expected
            assert module.operation.verify()
