"""Programs on several threads give what they give on one, bit for bit, whoever calls them and how often."""

import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tuner.core.errors import UsageError
from tuner.programs import fusion_compiler
from tuner.programs.fusion_compiler import compile_fusions
from tuner.programs.fusions import formation
from tuner.programs.fusions.payload import NotFused
from tuner.programs.run.fused_program import FusedFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

MAPS = """#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#cube = affine_map<(b, i, j) -> (b, i, j)>
#pair = affine_map<(b, i, j) -> (b, i)>
#turned = affine_map<(i, j) -> (j, i)>
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
"""


def weight(name: str, *shape: int) -> str:
    """Returns a constant of many different numbers."""
    numbers = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    kind = "x".join(map(str, shape))
    return f'  %{name} = arith.constant dense<"0x{numbers.tobytes().hex().upper()}"> : tensor<{kind}xf32>\n'


def zeros(name: str, *shape: int) -> str:
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    return (
        f"  %{name}_e = tensor.empty() : {kind}\n"
        f"  %{name} = linalg.fill ins(%zero : f32) outs(%{name}_e : {kind}) -> {kind}\n"
    )


def program(arguments: str, result: str, body: str) -> str:
    return (
        f"{MAPS}func.func @main({arguments}) -> {result} {{\n  %zero = arith.constant 0.0 : f32\n{body}\n}}\n"
    )


def linear(m: int, k: int, n: int) -> str:
    """A contraction with bias and relu."""
    a, c = f"tensor<{m}x{k}xf32>", f"tensor<{m}x{n}xf32>"
    body = weight("w", k, n) + weight("bias", n) + zeros("z", m, n)
    body += f"""  %p = linalg.matmul ins(%x, %w : {a}, tensor<{k}x{n}xf32>) outs(%z : {c}) -> {c}
  %y = linalg.generic {{indexing_maps = [#whole, #column, #whole], iterator_types = ["parallel", "parallel"]}}
    ins(%p, %bias : {c}, tensor<{n}xf32>) outs(%z_e : {c}) {{
  ^bb0(%v: f32, %b: f32, %o: f32):
    %s = arith.addf %v, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }} -> {c}
  return %y : {c}"""
    return program(f"%x: {a}", c, body)


PAIR = program(
    "%x: tensor<13x40xf32>",
    "tensor<13x50xf32>",
    weight("w", 40, 50)
    + weight("up", 40, 50)
    + zeros("z", 13, 50)
    + """  %p = linalg.matmul ins(%x, %w : tensor<13x40xf32>, tensor<40x50xf32>) outs(%z : tensor<13x50xf32>)
    -> tensor<13x50xf32>
  %q = linalg.matmul ins(%x, %up : tensor<13x40xf32>, tensor<40x50xf32>) outs(%z : tensor<13x50xf32>)
    -> tensor<13x50xf32>
  %y = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%p, %q : tensor<13x50xf32>, tensor<13x50xf32>) outs(%z_e : tensor<13x50xf32>) {
  ^bb0(%v: f32, %b: f32, %o: f32):
    %r = arith.mulf %v, %b : f32
    linalg.yield %r : f32
  } -> tensor<13x50xf32>
  return %y : tensor<13x50xf32>""",
)
BATCH = program(
    "%x: tensor<3x17x24xf32>, %w: tensor<3x24x19xf32>",
    "tensor<3x17x19xf32>",
    zeros("z", 3, 17, 19)
    + """  %p = linalg.batch_matmul ins(%x, %w : tensor<3x17x24xf32>, tensor<3x24x19xf32>)
    outs(%z : tensor<3x17x19xf32>) -> tensor<3x17x19xf32>
  return %p : tensor<3x17x19xf32>""",
)
NORMALIZED = program(  # each row by the sum of its exponentials
    "%x: tensor<21x37xf32>",
    "tensor<21x37xf32>",
    zeros("z", 21)
    + """  %t = tensor.empty() : tensor<21x37xf32>
  %e = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<21x37xf32>) outs(%t : tensor<21x37xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<21x37xf32>
  %sum = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%e : tensor<21x37xf32>) outs(%z : tensor<21xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<21xf32>
  %y = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%e, %sum : tensor<21x37xf32>, tensor<21xf32>) outs(%t : tensor<21x37xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.divf %v, %s : f32
    linalg.yield %r : f32
  } -> tensor<21x37xf32>
  return %y : tensor<21x37xf32>""",
)
TURNED = program(  # a transpose, then an elementwise operation on the other order of the same numbers
    "%x: tensor<35x18xf32>",
    "tensor<18x35xf32>, tensor<35x18xf32>".join("()"),
    """  %t = tensor.empty() : tensor<18x35xf32>
  %y = linalg.transpose ins(%x : tensor<35x18xf32>) outs(%t : tensor<18x35xf32>) permutation = [1, 0]
  %u = tensor.empty() : tensor<35x18xf32>
  %z = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<35x18xf32>) outs(%u : tensor<35x18xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.tanh %v : f32
    linalg.yield %r : f32
  } -> tensor<35x18xf32>
  return %y, %z : tensor<18x35xf32>, tensor<35x18xf32>""",
)
CONVOLVED = program(  # padded inside of the program
    "%x: tensor<1x4x9x9xf32>",
    "tensor<1x6x9x9xf32>",
    weight("w", 6, 4, 3, 3)
    + zeros("z", 1, 6, 9, 9)
    + """  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x4x9x9xf32> to tensor<1x4x11x11xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x4x11x11xf32>, tensor<6x4x3x3xf32>) outs(%z : tensor<1x6x9x9xf32>)
    -> tensor<1x6x9x9xf32>
  return %y : tensor<1x6x9x9xf32>""",
)
COLUMN_SUMS = program(  # a reduction of the first dimension: loops
    "%x: tensor<23x11xf32>",
    "tensor<11xf32>",
    zeros("z", 11)
    + """  %y = linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<23x11xf32>) outs(%z : tensor<11xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<11xf32>
  return %y : tensor<11xf32>""",
)
ATTENDED = program(  # to positions by the exponentials of their scores
    "%q: tensor<3x19x8xf32>, %k: tensor<3x8x37xf32>, %v: tensor<3x37x10xf32>",
    "tensor<3x19x10xf32>",
    zeros("z", 3, 19, 37)
    + zeros("s", 3, 19)
    + zeros("t", 3, 19, 10)
    + """  %p = linalg.batch_matmul ins(%q, %k : tensor<3x19x8xf32>, tensor<3x8x37xf32>)
    outs(%z : tensor<3x19x37xf32>) -> tensor<3x19x37xf32>
  %e = linalg.generic {indexing_maps = [#cube, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%p : tensor<3x19x37xf32>) outs(%z_e : tensor<3x19x37xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<3x19x37xf32>
  %sum = linalg.generic {indexing_maps = [#cube, #pair],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%e : tensor<3x19x37xf32>) outs(%s : tensor<3x19xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<3x19xf32>
  %w = linalg.generic {indexing_maps = [#cube, #pair, #cube],
    iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%e, %sum : tensor<3x19x37xf32>, tensor<3x19xf32>) outs(%z_e : tensor<3x19x37xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<3x19x37xf32>
  %y = linalg.batch_matmul ins(%w, %v : tensor<3x19x37xf32>, tensor<3x37x10xf32>)
    outs(%t : tensor<3x19x10xf32>) -> tensor<3x19x10xf32>
  return %y : tensor<3x19x10xf32>""",
)
PROGRAMS = {
    "contraction": linear(29, 40, 70),
    "contraction of whole tiles": linear(12, 32, 128),
    "contraction of one row": linear(1, 32, 300),
    "pair": PAIR,
    "batch_matmul": BATCH,
    "attention": ATTENDED,
    "rows": NORMALIZED,
    "elementwise": TURNED,
    "convolution": CONVOLVED,
    "loops": COLUMN_SUMS,
}


@pytest.fixture(autouse=True)
def every_fusion_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 0.0)


@pytest.fixture(autouse=True)
def every_attention_is_one_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formation, "LEAST_KEYS", 1)
    monkeypatch.setattr(formation, "LEAST_SCORES", 1)


@cache
def compiled(name: str, threads: int) -> FusedFunction:
    found = compile_fusions(PROGRAMS[name], None, describe_machine(), threads=threads)
    assert not isinstance(found, NotFused), found
    return FusedFunction(found.code, found.weights)


def inputs_of(function: FusedFunction, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(each.shape).astype(np.float32) for each in function.code.arguments]


def results(function: Any, inputs: list[np.ndarray]) -> list[bytes]:
    found = function(*inputs)
    return [each.tobytes() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kind_of_fusion_gives_the_bits_of_one_thread(name: str, threads: int) -> None:
    alone, together = compiled(name, 1), compiled(name, threads)
    inputs = inputs_of(alone)
    expected = results(alone, inputs)
    assert together.code.threads == threads
    assert not name.startswith("attention") or [each.strategy for each in alone.code.fusions] == [
        "attention_cpu"
    ]
    assert any(each.is_divided for each in together.code.fusions)
    for _ in range(10):
        assert results(together, inputs) == expected


def test_two_threads_of_python_may_call_programs_at_once() -> None:
    """The same program and another one, from two threads: calls wait for each other."""
    functions = [compiled(name, 2) for name in ("rows", "contraction", "rows")]
    expected = [results(each, inputs_of(each, at)) for at, each in enumerate(functions)]
    wrong: list[int] = []

    def call(at: int) -> None:
        inputs = inputs_of(functions[at], at)
        wrong.extend(at for _ in range(50) if results(functions[at], inputs) != expected[at])

    callers = [threading.Thread(target=call, args=(at,)) for at in range(3)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert wrong == []


def test_a_forked_process_calls_the_program() -> None:
    function = compiled("contraction", 2)
    inputs = inputs_of(function)
    expected = results(function, inputs)
    child = os.fork()
    if not child:
        os._exit(0 if results(function, inputs) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert results(function, inputs) == expected


IN_A_FRESH_PROCESS = """
import sys
import numpy as np
import tuner
program = tuner.load(sys.argv[1], **({"threads": int(sys.argv[3])} if len(sys.argv) > 3 else {}))
np.save(sys.argv[2], program(np.load(sys.argv[2])))
print(program.code.threads, "numba_cuda_mlir" in sys.modules)
"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("given", "threads"), [((), 3), (("2",), 2), (("1",), 1)])
def test_an_exported_program_runs_on_its_threads_without_a_compiler_and_the_process_ends(
    tmp_path: Path, given: tuple[str, ...], threads: int
) -> None:
    function = compiled("contraction", 3)
    (inputs,) = inputs_of(function)
    function.export(tmp_path / "program")
    np.save(tmp_path / "x.npy", inputs)
    command: list[str | Path] = [sys.executable, "-c", IN_A_FRESH_PROCESS]
    command += [tmp_path / "program", tmp_path / "x.npy", *given]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{threads} False\n", "", 0)
    assert results(function, [inputs]) == [np.load(tmp_path / "x.npy").tobytes()]


def test_a_program_of_one_thread_is_loaded_for_one(tmp_path: Path) -> None:
    compiled("rows", 1).export(tmp_path / "one")
    with pytest.raises(UsageError, match=r"^threads: found 2, allowed 1; compile the program with threads=2"):
        tuner.load(tmp_path / "one", threads=2)
    compiled("rows", 2).export(tmp_path / "two")
    with pytest.raises(UsageError, match=r"^threads: found 0, allowed 1 to 256$"):
        tuner.load(tmp_path / "two", threads=0)


def test_fusions_of_little_work_are_left_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 15e-6)
    found = compile_fusions(PROGRAMS["rows"], None, describe_machine(), threads=2)
    assert not isinstance(found, NotFused)
    assert (found.code.threads, [each.is_divided for each in found.code.fusions]) == (1, [False])
    assert b"program_part" not in found.code.object_code


@pytest.mark.parametrize("threads", [0, 257])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(UsageError, match=rf"^threads: found {threads!r}, allowed 1 to 256$"):
        tuner.compile_program(PROGRAMS["rows"], target="cpu", threads=threads)
    with pytest.raises(UsageError, match="threads 2 cannot be combined with target simulator"):
        tuner.compile_program(PROGRAMS["rows"], target="simulator", threads=2)
