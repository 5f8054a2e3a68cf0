"""Errors of the user, and of a candidate; places of ops are read from their reasons."""

import pickle

import numpy as np
import pytest

from tuner.core import errors
from tuner.core.errors import (
    PAYLOAD,
    SCRIPT,
    CandidateError,
    Failure,
    OpPlace,
    Stage,
    TunerError,
    UsageError,
    install_extra,
    install_module,
)

LACKING = "an operation lacks an attribute"
NEEDED = f"{LACKING} that its kind needs here: is the transform meant for it?"


def test_a_usage_error_within_is_the_candidates_failure_and_what_to_type_ends_the_line() -> None:
    with pytest.raises(CandidateError) as caught, errors.failing_at(Stage.RUN):
        raise UsageError("tile: found 7, allowed 8")
    assert caught.value.failure == Failure(Stage.RUN, "tile: found 7, allowed 8")
    assert isinstance(caught.value.__cause__, UsageError)
    for error in (CandidateError(Stage.VERIFY, "wrong"), TunerError("broken")):
        with pytest.raises(TunerError) as other, errors.failing_at(Stage.RUN):
            raise error
        assert other.value is error
    error = UsageError("best: nothing measured", "tuner tune matmul 8x8x8")
    error.hint += " --db x.db"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == "best: nothing measured; tuner tune matmul 8x8x8 --db x.db"
    assert str(UsageError("shape: found 8")) == "shape: found 8"


@pytest.mark.mlir
def test_the_bindings_say_a_missing_attribute_as_it_is_known_here() -> None:
    from tuner.mlir.bindings import ir

    with ir.Context(), pytest.raises(KeyError) as raised:
        ir.Module.parse("module {}").operation.attributes["none"]
    assert errors.defect_line(raised.value).startswith(LACKING)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("8 bytes"), "not enough memory: 8 bytes"),
        (KeyError("attempt to access a non-existent attribute"), NEEDED),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("two\nlines"), "ValueError: two lines"),
    ],
)
def test_an_error_that_nobody_raised_on_purpose_is_one_line(error: Exception, line: str) -> None:
    assert errors.defect_line(error) == line
    with pytest.raises(MemoryError) as raised:
        np.empty(2**59, np.float64)
    assert errors.defect_line(raised.value).startswith("not enough memory: Unable to allocate 4.00 EiB")


# Places of ops are read from the reason of a failure.
TWICE = "transform.loop.unroll at script:12:5"
UNROLL, MATMUL = OpPlace(SCRIPT, "transform.loop.unroll", 12, 5), OpPlace(PAYLOAD, "linalg.matmul", 2, 14)
ILLEGAL = "error: \"payload\":4:10: failed to legalize operation 'bufferization.to_tensor' that was "
ILLEGAL += 'explicitly marked illegal note: "payload":4:10: see current operation'  # as MLIR writes it


@pytest.mark.parametrize(
    ("reason", "places"),
    [
        (f"{TWICE}: wrong; linalg.matmul at payload:2:14: when applied; {TWICE}: see", (UNROLL, MATMUL)),
        ("an op at payload:3:7: is large", (OpPlace(PAYLOAD, "an op", 3, 7),)),
        (ILLEGAL, (OpPlace(PAYLOAD, "bufferization.to_tensor", 4, 10),)),
        ("element (0, 1): found 2 at index:1:2, expected 1", ()),
    ],
)
def test_each_op_is_named_once_in_the_order_of_the_reason(reason: str, places: tuple[OpPlace, ...]) -> None:
    assert errors.named_places(reason) == places


@pytest.mark.parametrize(
    ("module", "installs"),
    [
        ("cuda.bindings", install_extra("cuda")),
        ("iree.compiler", install_extra("iree")),
        ("numba_cuda_mlir", install_extra("cuda")),
        ("torch", install_extra("torch")),
        ("yaml", "pip install pyyaml"),
        ("no_such.module", "pip install no-such"),
    ],
)
def test_a_missing_module_is_installed_by_its_extra_else_as_the_package_that_has_it(
    module: str, installs: str
) -> None:
    assert install_module(module) == installs
