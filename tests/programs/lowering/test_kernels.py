import re
from typing import Any

import numpy as np
import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.kernels import parsed
from tests.programs.file_check import filled
from tests.programs.lowering.compiled import first_script, host_function, module_text
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.gpu import chip_of
from tuner.core.problem import Matmul, Problem
from tuner.programs.lowering import kernels

pytestmark = pytest.mark.mlir
LOOP = text_beside(__file__, "LOOP")


def test_loops_around_launches_are_the_hosts_and_others_stay() -> None:
    with parsed(LOOP) as module:
        before = str(module)
        assert kernels.make_host_loops(module.operation) == 2
        assert module.operation.verify()
        text = str(module)
    assert missing(kernels.make_host_loops.__doc__ or "", before, text) == []  # the docstring's IR is real
    assert text.count("scf.for") == 3
    assert text.count("scf.parallel") == 1
    assert "scf.for %arg4 = %c1 to %c8" in text.replace("%c1_", "%c1")


CONSTANTS = "%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %c3 = arith.constant 3 : index"
ONE = "%one = arith.constant 1.0 : f32"


def rewrite(payload: Any) -> None:
    kernels.launch_parallel_loops(payload.function)


def filling(bounds: str, kind: str, indices: str = "%i, %j", extra: str = "") -> str:
    parts = {"kind": kind, "extra": extra, "bounds": bounds, "indices": indices}
    return filled(__file__, "FILLING", constants=CONSTANTS, one=ONE, **parts)


def test_every_iteration_runs_once() -> None:
    kind = "37x53xf32"
    sizes = "%c37 = arith.constant 37 : index %c53 = arith.constant 53 : index"
    text = filling("(%i, %j) = (%c0, %c0) to (%c37, %c53) step (%c1, %c1)", kind)
    a = np.zeros((37, 53), np.float32)
    host_function(text.replace(ONE, f"{ONE} {sizes}"), rewrite)(a)
    np.testing.assert_array_equal(a, np.ones((37, 53)))


def test_bounds_and_steps_are_kept() -> None:
    text = filling("(%i) = (%c1) to (%n) step (%c3)", "?xf32", "%i", ", %n: index")
    function = host_function(text, rewrite)
    for length in (0, 1, 2, 4, 5, 20):
        a, expected = np.zeros(20, np.float32), np.zeros(20)
        function(a, length)
        expected[1:length:3] = 1
        np.testing.assert_array_equal(a, expected)


def test_neighbouring_threads_take_the_last_dimension() -> None:
    text = module_text(filling("(%i, %j) = (%c0, %c0) to (%c3, %c3) step (%c1, %c1)", "3x3xf32"), rewrite)
    lines = [line.strip() for line in text.splitlines()]
    column = next(line for line in lines if "arith.remui" in line).split(" =")[0]
    assert f", {column}]" in next(line for line in lines if "memref.load" in line)
    assert text.count("gpu.launch") == 1
    assert "scf.parallel" not in text


def test_an_inner_loop_stays_within_its_thread() -> None:
    inner = filled(__file__, "INNER")
    text = f"func.func @f(%a: memref<3x3xf32>) {{ {CONSTANTS} {ONE} {inner} return }}"
    assert module_text(text, rewrite).count("gpu.launch") == 1
    a = np.zeros((3, 3), np.float32)
    host_function(text, rewrite)(a)
    assert a.all()


def test_a_loop_that_reduces_to_a_value_stays_with_the_host() -> None:
    text = text_beside(__file__, "SUM")
    assert "gpu.launch" not in module_text(text, rewrite)
    assert host_function(text, rewrite)(np.arange(8, dtype=np.float32)) == 4.0


def test_a_grid_is_never_empty_and_has_a_limit() -> None:
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i", ", %n: index")
    lines = module_text(text, rewrite).splitlines()
    (largest,) = (line for line in lines if "arith.maxsi" in line and "%c1" in line)
    assert f"= {largest.split('=')[0].strip()}" in next(line for line in lines if "gpu.launch" in line)
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i")
    with pytest.raises(CandidateError, match="found 549755813889 parallel iterations, allowed 549755813632"):
        module_text(text.replace(ONE, f"{ONE} %n = arith.constant 549755813889 : index"), rewrite)


# Programs whose work became kernels, run on the host: same numbers, nothing leaked.

CHIP = chip_of("sm_90")
FILL = "linalg.fill ins(%zero : f32) outs(%c : memref<20x12xf32>)"
MATMUL = "linalg.matmul ins(%a, %b : memref<20x7xf32>, memref<7x12xf32>) outs(%c : memref<20x12xf32>)"
PROBLEM = Matmul(20, 12, 7)


def program(*body: str) -> str:
    lines = "\n  ".join(body)
    return f"""func.func @f(%a: memref<20x7xf32>, %b: memref<7x12xf32>, %c: memref<20x12xf32>) {{
  %zero = arith.constant 0.0 : f32
  {lines}
  return
}}"""


def launched(scripts: dict[Problem, Any]) -> Any:
    return lambda payload: kernels.launch_kernels(payload, scripts, CHIP)


def arrays() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((20, 7), (7, 12), (20, 12)))


@pytest.mark.parametrize("is_scripted", [True, False])
@pytest.mark.parametrize("is_filled", [True, False])
def test_a_matmul_gives_the_same_as_kernels(is_scripted: bool, is_filled: bool) -> None:
    scripts = {PROBLEM: first_script(PROBLEM)} if is_scripted else {}
    function = host_function(program(*[FILL] * is_filled, MATMUL), launched(scripts))
    a, b, c = arrays()
    expected = a @ b + (0 if is_filled else c)
    function(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5)
    assert function.allocations == 0


def test_a_matmul_of_views_gives_the_same_as_kernels() -> None:
    view = "memref<{}xf32, strided<[{}, 1]{}>>"
    a, b, c = view.format("10x6", 7, ", offset: 7"), view.format("6x12", 12, ""), view.format("10x12", 12, "")
    text = program(
        f"%u = memref.subview %a[1, 0] [10, 6] [1, 1] : memref<20x7xf32> to {a}",
        f"%v = memref.subview %b[0, 0] [6, 12] [1, 1] : memref<7x12xf32> to {b}",
        f"%w = memref.subview %c[0, 0] [10, 12] [1, 1] : memref<20x12xf32> to {c}",
        f"linalg.fill ins(%zero : f32) outs(%w : {c})",
        f"linalg.matmul ins(%u, %v : {a}, {b}) outs(%w : {c})",
    )
    problem = Matmul(10, 12, 6)
    function = host_function(text, launched({problem: first_script(problem)}))
    a_, b_, c_ = arrays()
    expected = c_.copy()
    expected[:10] = a_[1:11, :6] @ b_[:6]
    function(a_, b_, c_)
    np.testing.assert_allclose(c_, expected, rtol=0, atol=1e-5)
    assert function.allocations == 0


def test_two_matmuls_of_one_problem_share_a_kernel_with_its_name_and_leave_no_fill() -> None:
    found: list[Problem] = []
    module_text(program(FILL, MATMUL, MATMUL), lambda payload: found.extend(kernels.problems_of(payload)))
    assert found == [PROBLEM]
    text = module_text(program(FILL, MATMUL, MATMUL), launched({PROBLEM: first_script(PROBLEM)}))
    assert text.count("gpu.func") == 1
    assert text.count("gpu.launch_func") == 2
    assert "@kernels_20x12x7_f32_nn::@matmul_kernel_20x12x7_f32_nn" in text
    text = module_text(program(FILL, MATMUL), launched({PROBLEM: first_script(PROBLEM)}))
    assert "gpu.launch blocks" not in text


def test_elementwise_ops_and_reductions_become_kernels() -> None:
    text = text_beside(__file__, "SQUARES")
    text_of_module = module_text(text, launched({}))
    assert "linalg." not in text_of_module
    assert text_of_module.count("gpu.launch blocks") == 4
    x = np.random.default_rng(0).standard_normal((9, 33)).astype(np.float32)
    turned, sums = host_function(text, launched({}))(x)
    np.testing.assert_array_equal(turned, (x * x).T)
    np.testing.assert_allclose(sums, (x * x).sum(1), rtol=1e-5)


def test_an_op_that_is_no_loop_is_refused() -> None:
    with pytest.raises(
        CandidateError, match=r"linalg\.softmax at line .*: found no loops for it, allowed linalg ops"
    ):
        module_text(text_beside(__file__, "SOFTMAX"), launched({}))


def test_a_loop_gets_the_blocks_and_threads_that_it_is_mapped_to() -> None:
    identity = "map = (d0) -> (d0), bound = (d0) -> (d0)"
    names = ("block_x", "thread_x")
    mapping = ", ".join(f"#gpu.loop_dim_map<processor = {name}, {identity}>" for name in names)
    loop = f"""%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index %c12 = arith.constant 12 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c20, %c12) step (%c1, %c1) {{
    memref.store %zero, %c[%i, %j] : memref<20x12xf32>
    scf.reduce
  }} {{mapping = [{mapping}]}}"""
    text = module_text(program(loop), launched({}))
    assert re.search(r"blocks\(.*\) in \(%\w+ = %c20\w*, %\w+ = %c1\w*, ", text)
    assert re.search(r"threads\(.*\) in \(%\w+ = %c12\w*, %\w+ = %c1\w*, ", text)
