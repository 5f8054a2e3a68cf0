"""Stock ``mlir-opt`` runs the scripts of every strategy that calls no op of this project's own.

tests/cli/commands/test_mlir_opt.py does it with one exported file; here it is many kinds of problems.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind
from tuner.core.interfaces import Artifact, Script
from tuner.core.machine import Machine
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.lowering import with_batch_loops
from tuner.payload.cpu import matrix_bytes, partitions_in, payload_mlir
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.requirements import custom_ops
from tuner.targets.cpu.evaluator import CpuEvaluator

MLIR_OPT = shutil.which("mlir-opt-22")  # Debian: mlir-22-tools
pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed (Debian: mlir-22-tools)"),
]
AVX512 = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
ANYWHERE, HERE = CpuPoints(AVX512), CpuPoints(describe_machine())
STOCK = ("matmul_cpu_packed", "matmul_cpu_direct", "matmul_cpu_dot")
FEW = 5  # of the kinds: every fifth, with two threads others than with one; what runs, in turn
TRIES = 50  # until a point calls no op of our own


def stock_point(points: CpuPoints, kind: KernelKind) -> tuple[CpuPoint, Script]:
    rng = np.random.default_rng(0)
    for _ in range(TRIES):
        point = points.draw(kind, rng)
        script = points.bind(point)
        if not custom_ops(script.text):
            return point, script
    raise LookupError(f"{kind}: every point calls an op of our own")


def run_mlir_opt(point: CpuPoint, script: Script, folder: Path) -> str:
    """Returns the payload after the script, as mlir-opt prints it."""
    (folder / "best.mlir").write_text(script.text)
    payload = payload_mlir(point.problem, partitions_in(script.text, point.problem))
    (folder / "best.source.mlir").write_text(payload)
    library = f"--transform-preload-library=transform-library-paths={folder / 'best.mlir'}"
    command = [str(MLIR_OPT), str(folder / "best.source.mlir"), library, "--transform-interpreter"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{point.text}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STOCK)
@pytest.mark.parametrize("threads", [1, 2])
def test_mlir_opt_vectorizes_kinds_of_problems(strategy: str, threads: int, tmp_path: Path) -> None:
    kinds = [kind for kind in ANYWHERE.kinds(threads) if kind.strategy == strategy][threads - 1 :: FEW]
    assert kinds
    for kind in kinds:
        text = run_mlir_opt(*stock_point(ANYWHERE, kind), tmp_path)
        assert "linalg.matmul" not in text
        assert "vector." in text


@pytest.mark.drawn(1)
@pytest.mark.skipif(not HERE.kinds(1), reason="this processor has neither AVX-512 nor AVX2")
@pytest.mark.parametrize("strategy", STOCK)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_mlir_opt_makes_is_right(strategy: str, threads: int, tmp_path: Path) -> None:
    """Lowered and run here: the other compiler's transforms give the right numbers."""
    evaluator = CpuEvaluator(threads)
    for kind in [kind for kind in HERE.kinds(threads) if kind.strategy == strategy][
        FEW * (threads - 1) :: 2 * FEW
    ]:
        point, script = stock_point(HERE, kind)
        text = run_mlir_opt(point, script, tmp_path)
        with transform.new_context(), ir.Location.unknown():
            code = lowering.lower_to_llvm(transform.parse(text, "mlir-opt"))
        partitions = partitions_in(script.text, point.problem)
        code = with_batch_loops(code, partitions, matrix_bytes(point.problem))
        loaded = evaluator.load(
            point.problem, Artifact(code, hashlib.sha256(code.encode()).hexdigest(), partitions)
        )
        assert evaluator.verify(point.problem, loaded, np.random.default_rng(0)).max_error <= 1.0


def test_mlir_opt_does_not_know_this_projects_ops(tmp_path: Path) -> None:
    """So the header of such a script must say how to run it."""
    point = ANYWHERE.draw(KernelKind("matmul_cpu_pairs", "bf16", "nn", "none", 1), np.random.default_rng(0))
    script = ANYWHERE.bind(point)
    assert custom_ops(script.text) == ("tuner.pair_block",)
    with pytest.raises(AssertionError, match=r"tuner\.pair_block"):
        run_mlir_opt(point, script, tmp_path)
