import pytest

from tests.mlir.kernels import parsed
from tests.programs.lowering.device_programs import alloc, copy, free, host_function, main_function
from tests.texts import text_beside
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

pipeline = pytest.importorskip("tuner.mlir.passes")
device_lowering = pytest.importorskip("tuner.programs.lowering.device")

TO_LLVM = device_lowering.TO_LLVM.format(bare_pointers="true")


def converted(text: str) -> None:
    """Runs upstream's passes, then the check."""
    with parsed(text) as module:
        pipeline.run_passes(module, TO_LLVM)
        device_lowering.reject_what_was_not_converted(module)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ((alloc("d"), free("d")), "gpu.alloc"),
        ((copy("a", "b"),), "gpu.memcpy"),
        (("gpu.memset %a, %x : memref<16xf32>, f32",), "gpu.memset"),
    ],
)
def test_what_upstream_leaves_without_a_word_is_named_with_its_place(
    lines: tuple[str, ...], name: str
) -> None:
    text = host_function(*lines, others="%x: f32").split("  gpu.module")[0] + "}"
    with pytest.raises(CandidateError, match=rf"^host program: found {name}, allowed .*token \(at line 7:"):
        converted(text)


@pytest.mark.parametrize(
    ("view", "layout", "is_allowed"),
    [
        ("[0, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1]>", True),
        ("[1, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1], offset: 4>", False),
        ("[%c1, 0] [2, 4] [1, 1]", "2x4xf32, strided<[4, 1], offset: ?>", False),
        ("[0, 0] [2, 4] [2, 1]", "2x4xf32, strided<[8, 1]>", False),
        ("[0, 0] [4, 2] [1, 1]", "4x2xf32, strided<[4, 1]>", False),
    ],
)
def test_views_are_copied_from_their_buffers_start_or_not_at_all(
    view: str, layout: str, is_allowed: bool
) -> None:
    part, plain = f"memref<{layout}>", f"memref<{layout.split(',')[0]}>"
    lines = (
        f"%v = memref.subview %x{view} : memref<4x4xf32> to {part}",
        f"gpu.memcpy %y, %v : {plain}, {part}",
    )
    text = host_function(*lines, others=f"%x: memref<4x4xf32>, %y: {plain}")
    with main_function(text) as (module, _):
        if is_allowed:
            device_lowering.reject_copies_of_views(module)
            return
        refused = r"^host program: found gpu\.memcpy of memref<.*>, allowed contiguous memory .* \(at line "
        with pytest.raises(CandidateError, match=refused):
            device_lowering.reject_copies_of_views(module)


def test_an_unknown_operation_is_named_before_the_casts_that_it_leaves() -> None:
    text = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    with pytest.raises(CandidateError, match=r"^host program: found func\.func, allowed what lowers to LLVM"):
        converted(text)


def test_a_cast_alone_is_named() -> None:
    with (
        parsed(text_beside(__file__, "CAST")) as module,
        pytest.raises(CandidateError, match=r"found builtin\.unrealized_conversion_"),
    ):
        device_lowering.reject_what_was_not_converted(module)


@pytest.mark.parametrize(("kind", "is_left"), [("memref<16xf32>", True), ("!llvm.ptr", False)])
def test_a_launch_is_left_only_of_types_that_llvm_knows(kind: str, is_left: bool) -> None:
    text = f"""module attributes {{gpu.container_module}} {{
      llvm.func @f(%p: !llvm.ptr) {{
        %one = llvm.mlir.constant(1 : i64) : i64
        {"%a = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<16xf32>" if is_left else ""}
        gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i64
          args({"%a" if is_left else "%p"} : {kind})
        llvm.return
      }}
      gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_90">, "code">]
    }}"""
    with parsed(text) as module:
        if not is_left:
            device_lowering.reject_what_was_not_converted(module)
            return
        with pytest.raises(CandidateError, match=r"found gpu\.launch_func, allowed what lowers to LLVM"):
            device_lowering.reject_what_was_not_converted(module)


def test_llvm_and_launches_of_its_types_pass() -> None:
    converted("func.func @f(%a: memref<4xf32>) -> memref<4xf32> { return %a : memref<4xf32> }")
