"""A public function that is called with a value of a wrong type says so in one line."""

import contextlib
import datetime
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tuner
from tuner.core.typed_arguments import typed, typed_arguments

PROBLEM = tuner.Matmul(8, 8, 8)
MISSING = "/nonexistent/results.db"  # a call whose arguments are all right ends at this database


class Stranger:
    """A value that no parameter takes, which is printed on two lines."""

    def __repr__(self) -> str:
        return "two\nlines"


CALLS: dict[str, dict[str, Any]] = {  # public function -> arguments of a call that is refused before any work
    "tune": {"problem": PROBLEM, "target": "replay:/nonexistent", "trials": 1},
    "tune_many": {"problems": [PROBLEM], "target": "replay:/nonexistent", "trials": 1},
    "resume": {"run": 1, "db": MISSING},
    "resume_many": {"campaign": 1, "db": MISSING},
    "history": {"db": MISSING},
    "runs": {"db": MISSING},
    "export": {"what": PROBLEM, "db": MISSING},
    "load_best": {"problem": PROBLEM, "db": MISSING},
    "portfolio": {"campaign": 1, "configs": 1, "db": MISSING},
    "report": {"db": MISSING},
    "compile_program": {"payload": "/nonexistent.mlir", "target": "cpu"},
    "load": {"folder": "/nonexistent"},
    "Matmul": {"m": 8, "n": 8, "k": 8},
    "BatchMatmul": {"batch": 2, "m": 8, "n": 8, "k": 8},
}
CONDITIONS = ("shape", "op", "dtype", "target", "threads", "status", "since", "limit", "cache")
OF_TRIALS = ("run", "best", "sort", "strategy")  # conditions that ``runs`` has not


def parameters(name: str) -> list[str]:
    """Returns what a public function may be called with, conditions of past trials and runs among it."""
    named = inspect.signature(getattr(tuner, name)).parameters.values()
    conditions = {"history": (*CONDITIONS, *OF_TRIALS), "runs": CONDITIONS}.get(name, ())
    return [*(each.name for each in named if each.kind is not each.VAR_KEYWORD), *conditions]


PARAMETERS = [(name, each) for name in CALLS for each in parameters(name)]


def refusal(call: Callable[..., object], **arguments: Any) -> str:
    """Returns the line with which a call is refused."""
    with pytest.raises(tuner.UsageError) as refused:
        call(**arguments)
    line = str(refused.value)
    assert "\n" not in line
    assert len(line) < 300
    return line


@contextlib.contextmanager
def refused_in_one_line() -> Iterator[None]:
    """Context manager: a UsageError of one line ends its body, if any exception does."""
    try:
        yield
    except tuner.UsageError as error:
        if "\n" in str(error):
            raise


def test_every_public_function_is_called_here() -> None:
    functions = {name for name in tuner.__all__ if inspect.isfunction(getattr(tuner, name))}
    assert functions - {"progress"} == CALLS.keys()  # which has no parameter


@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_no_type_that_is_allowed_is_refused_by_its_name(name: str) -> None:
    for parameter in parameters(name):
        line = refusal(getattr(tuner, name), **CALLS[name] | {parameter: Stranger()})
        assert re.match(
            rf"({parameter}|op|dtype|output dtype|operation): found \S*Stranger, allowed ", line
        ), line


ANY_VALUE = st.one_of(
    st.sampled_from([None, True, b"x", "a\0b", "\ud800", float("nan"), object, datetime.date(2026, 1, 31)]),
    st.sampled_from([(), [], {}, (1, "x"), np.ones(3), np.float32(1), Path("a\0b"), Stranger(), len]),
    st.integers(),
    st.sampled_from([10**5000, -1, 2**63, "x", ""]),
)


@given(st.sampled_from(PARAMETERS), ANY_VALUE)
@settings(max_examples=150)
def test_any_value_works_or_is_refused_in_one_line(called: tuple[str, str], value: Any) -> None:
    name, parameter = called
    with refused_in_one_line():
        getattr(tuner, name)(**CALLS[name] | {parameter: value})


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("history", {"since": 5}, "since: found 5, allowed a datetime, a text or None"),
        ("history", {"limit": "x"}, "limit: found 'x', allowed an integer or None"),
        ("history", {"run": "2"}, "run: found '2', allowed an integer or None"),
        ("history", {"sort": None}, "sort: found None, allowed a text"),
        ("history", {"shape": (8, "x")}, "shape: found (8, 'x'), allowed a text, a tuple of .* or None"),
        ("load_best", {"problem": 5}, "problem: found 5, allowed such as tuner.Matmul(512, 512, 512)"),
        ("export", {"what": PROBLEM, "file": 5}, "file: found 5, allowed a path, a text or None"),
        ("report", {"file": 3}, "file: found 3, allowed a path, a text or None"),
        ("load", {"folder": 5}, "folder: found 5, allowed a text or a path"),
        ("compile_program", {"payload": 5}, "payload: found 5, allowed a text or a path"),
        ("tune_many", {"problems": 5}, "problems: found 5, allowed a tuple of values, each such as tuner.M"),
        ("resume", {"run": True}, "run: found True, allowed an integer"),
    ],
)
def test_the_line_says_what_was_found_and_what_is_allowed(
    name: str, arguments: dict[str, Any], line: str
) -> None:
    pattern = re.escape(line).replace(r"\.\*", ".*")
    assert re.match(pattern, refusal(getattr(tuner, name), **arguments))


def test_options_of_a_product_are_of_their_types() -> None:
    a = np.ones((2, 2), np.float32)
    for name in ("rule", "db", "threads", "measure"):
        assert refusal(tuner.matmul, a=a, b=a, **{name: [a]}).startswith(f"{name}: found [array")
    assert refusal(tuner.matmul, a=a, b=a, out=5) == "matmul: return arrays must be of ArrayType"
    assert "matmul" in refusal(tuner.matmul, a="x", b="y")


def test_functions_on_modules_refuse_values_of_no_type_that_is_allowed() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    import tuner.torch

    module = torch.nn.Linear(4, 2)
    for name, call in (
        ("compile", {"module": module}),
        ("tune", {"module": module}),
        ("load", {"folder": "/nonexistent"}),
        ("graph_counts", {}),
    ):
        function = getattr(tuner.torch, name)
        for parameter in inspect.signature(function).parameters:
            line = refusal(function, **call | {parameter: Stranger()})
            assert re.match(rf"{parameter}: found \S*Stranger, allowed ", line), line


def test_an_integer_of_numpy_is_one() -> None:
    assert tuner.Matmul(np.int64(8), np.uint8(8), 8) == PROBLEM  # type: ignore[arg-type]
    assert type(typed("run", np.int64(3), int | None)) is int


def test_the_function_keeps_its_name_and_its_parameters() -> None:
    @typed_arguments
    def doubled(number: int, *, times: "float" = 2) -> float:
        """Returns a number several times."""
        return number * times

    assert (doubled.__name__, list(inspect.signature(doubled).parameters)) == ("doubled", ["number", "times"])
    assert doubled(2, times=1.5) == 3
    with pytest.raises(TypeError, match="missing a required argument: 'number'"):
        doubled()  # type: ignore[call-arg]
