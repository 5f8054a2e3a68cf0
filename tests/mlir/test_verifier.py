"""A verdict is stored with the number of what verified it: when that changes, somebody says if verdicts do.

    python -m tests.mlir.test_verifier

records the sources of the present numbers. Raise ``VERIFIER``, ``GPU_VERIFIER`` or ``SIMULATOR_VERIFIER``
of ``tuner.mlir.fingerprint`` first where a result may be right or wrong otherwise than before.
"""

import ast
import hashlib
import json
from pathlib import Path

import pytest

from tuner.mlir.fingerprint import (
    GPU_VERIFIER,
    PACKAGE,
    SIMULATOR_VERIFIER,
    VERIFIER,
    Sources,
    files_of,
)

SHARED_SOURCES: Sources = (
    "core/bounded.py",
    "mlir/reference",
    "payload/comparison.py",
    "payload/drawing.py",
    "payload/inputs.py",
    "payload/reference.py",
    "payload/special_numbers.py",
    "runtime/cpu/faulting_memory.py",  # guards around arrays
    "runtime/cpu/memory.py",
    "targets/arrays.py",
)
VERIFIER_SOURCES: Sources = (
    *SHARED_SOURCES,
    "targets/cpu/evaluator.py",
    "targets/cpu/fusion_arrays.py",
    "targets/cpu/fusion_draws.py",
    "targets/cpu/loaded_kernel.py",
)
GPU_VERIFIER_SOURCES: Sources = (
    *SHARED_SOURCES,
    "gpu/target/arrays.py",
    "gpu/target/evaluator.py",
)
SIMULATOR_VERIFIER_SOURCES: Sources = (
    *SHARED_SOURCES,
    "gpu/ptxsim",
    "gpu/target/arrays.py",
    "gpu/target/block_sample.py",
    "gpu/ptxsim/target/evaluator.py",
)
RECORD = Path(__file__).with_name("verifier.json")
VERIFIERS = {
    "processor": (VERIFIER, VERIFIER_SOURCES),
    "gpu": (GPU_VERIFIER, GPU_VERIFIER_SOURCES),
    "simulator": (SIMULATOR_VERIFIER, SIMULATOR_VERIFIER_SOURCES),
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def meaning_of(text: str) -> str:
    """Returns a Python source without comments, line breaks and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def meaning_sha256(sources: Sources, package: Path = PACKAGE) -> str:
    digest = hashlib.sha256()
    for file in files_of(sources, package):
        text = file.read_text()
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
        digest.update((meaning_of(text) if file.suffix == ".py" else text).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_what_verifies_results_changes_only_with_its_number_or_on_purpose(verifier: str) -> None:
    number, sources = VERIFIERS[verifier]
    recorded = json.loads(RECORD.read_text())[verifier]
    assert recorded["number"] == number, "record the new number: python -m tests.mlir.test_verifier"
    assert recorded["sha256"] == meaning_sha256(sources), (
        f"what verifies results changed ({verifier}): if a verdict may be another one, raise the number in "
        "tuner/mlir/fingerprint.py; then python -m tests.mlir.test_verifier"
    )


def test_comments_and_docstrings_verify_nothing_and_a_tolerance_does() -> None:
    text = '"""Before."""\n\ndef bound(error: float) -> float:\n    """Of all."""\n    return 2 * error\n'
    commented = text.replace("Of all", "Of each").replace("2 * error", "2 * error  # twice")
    assert commented != text
    assert meaning_of(text) == meaning_of(commented)
    assert meaning_of(text) != meaning_of(text.replace("2 *", "3 *"))


if __name__ == "__main__":
    document = {
        verifier: {"number": number, "sha256": meaning_sha256(sources)}
        for verifier, (number, sources) in VERIFIERS.items()
    }
    RECORD.write_text(json.dumps(document, indent=1) + "\n")
