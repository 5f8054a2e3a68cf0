"""Indices out of range are errors of the call with op and line, and the next call is right."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.programs.test_export_constructs import TARGETS
from tests.texts import text_beside
from tuner.core.errors import CandidateError, IndexOutOfRange, Stage
from tuner.programs.request import ProgramRequest
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.run.host_function import HostFunction
from tuner.programs.service import run_program

pytestmark = pytest.mark.mlir


ROWS, COLUMNS, COUNT = 9, 256, 64
# Rows of a table, then a product that several threads share, then a division by what was gathered.
LOOKUP = text_beside(__file__, "LOOKUP")
TABLE = np.repeat(np.arange(1, ROWS + 1, dtype=np.float32)[:, None], COLUMNS, axis=1)
GOOD = np.arange(COUNT, dtype=np.int64) % ROWS


def with_row(number: int) -> Any:
    wrong = GOOD.copy()
    wrong[COUNT // 2] = number
    return wrong


def require_errors(function: Any, *more: int) -> None:
    """Calls a program with wrong indices, at first before any other call, and with right ones after each."""
    for wrong in (ROWS, -1, 2**62, -(2**63)):
        with pytest.raises(
            IndexError, match="index into tensor<9x256xf32> is outside of dimension 0"
        ) as error:
            function(with_row(wrong), TABLE, *more)
        assert isinstance(error.value, CandidateError)
        assert error.value.stage is Stage.RUN
        sums, parts = function(GOOD, TABLE, *more)
        assert np.array_equal(sums, TABLE[GOOD] * COLUMNS)
        assert np.array_equal(parts, 84 // TABLE[GOOD].astype(np.int64))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_of_fusions_goes_on_after_an_index_out_of_range(threads: int, tmp_path: Path) -> None:
    function = tuner.compile_program(LOOKUP.replace("MORE", ""), target="cpu", threads=threads)
    assert isinstance(function, FusedFunction)
    assert function.code.threads == threads
    assert function.code.asserts
    require_errors(function)
    function.export(tmp_path / "lookup")
    for loaded_threads in {1, threads}:
        require_errors(tuner.load(tmp_path / "lookup", threads=loaded_threads))


def test_calls_of_several_threads_do_not_get_errors_of_others() -> None:
    function: Any = tuner.compile_program(LOOKUP.replace("MORE", ""), target="cpu")

    def outcome(rows: Any) -> str:
        try:
            return "right" if np.array_equal(function(rows, TABLE)[0], TABLE[GOOD] * COLUMNS) else "wrong"
        except IndexOutOfRange:
            return "error"

    wrong = with_row(ROWS)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda rows: {outcome(rows) for _ in range(50)}, (GOOD, wrong, GOOD, wrong))
        assert list(found) == [{"right"}, {"error"}, {"right"}, {"error"}]


def test_a_program_as_a_whole_goes_on_too() -> None:
    function: Any = tuner.compile_program(LOOKUP.replace("MORE", ", %unused: index"), target="cpu")
    assert isinstance(function, HostFunction)
    require_errors(function, 1)
    threads = threading.active_count()
    for _ in range(20):
        with pytest.raises(IndexError):
            function(with_row(ROWS), TABLE, 1)
    assert function.allocations == 0
    assert threading.active_count() == threads


# The memory of an iteration that an assertion ends; a function that branches is not inlined in a loop.
IN_LOOP = text_beside(__file__, "IN_LOOP")
IN_ANOTHER = text_beside(__file__, "IN_ANOTHER")


def test_an_assertion_in_a_loop_leaves_no_memory_and_no_thread() -> None:
    function: Any = tuner.compile_program(IN_LOOP, target="cpu")
    function(5)
    threads = threading.active_count()
    for _ in range(20):
        with pytest.raises(CandidateError, match="too many"):
            function(9)
    assert threading.active_count() == threads
    assert function.allocations == 0
    assert np.array_equal(function(5), np.ones(4, np.float32))


def test_an_assertion_in_a_function_that_is_not_inlined_is_an_error_too() -> None:
    function: Any = tuner.compile_program(IN_ANOTHER, target="cpu")
    function(5)
    with pytest.raises(CandidateError, match="too many"):
        function(6)
    function(5)


FILL = text_beside(__file__, "FILL")
READ = text_beside(__file__, "READ")
ASSERT = text_beside(__file__, "ASSERT")


def run(target: str, text: str, *arguments: str) -> tuple[str, ...]:
    options = ProgramRequest(
        target=TARGETS[target], text=text, arguments=arguments, is_compared=True, is_timed=False
    )
    return tuple(each.verdict for each in run_program(options).comparisons)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [9, 2000, 2000000])
def test_a_write_beyond_an_argument_is_refused_with_its_line(target: str, count: int) -> None:
    found = r"^host: memref\.store at line 6:5: found out-of-bounds access"
    with pytest.raises(CandidateError, match=found) as caught:
        run(target, FILL, f"1={count}")
    assert caught.value.stage is Stage.RUN


@pytest.mark.parametrize("target", TARGETS)
def test_all_of_an_argument_may_be_accessed_and_sizes_of_the_call_count(target: str) -> None:
    assert run(target, FILL, "1=8") == ("equal",)
    assert run(target, READ, "0=[8]zeros", "1=[8]range") == ("equal",)
    with pytest.raises(CandidateError, match=r"^host: memref\.load at line 3:8: "):
        run(target, READ, "0=[8]zeros", "1=[7]range")
    with pytest.raises(CandidateError, match=r"^host: memref\.store at line 4:3: "):
        run(target, READ, "0=[7]zeros", "1=[8]range")


@pytest.mark.parametrize("target", TARGETS)
def test_an_assertion_of_the_program_is_reported_with_its_text(target: str) -> None:
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: n is too large$"):
        run(target, ASSERT, "1=9")
