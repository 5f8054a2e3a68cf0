"""GPUX with regions in functions of their own and streams that the program chooses, run in all orders."""

import numpy as np
import pytest

import tuner
from tests.texts import text_beside
from tuner.core.errors import TunerError
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir


STREAM, BUFFER = "!gpux.StreamType", "memref<16xf32>"
KERNEL = text_beside(__file__, "KERNEL")
REGION = text_beside(__file__, "REGION")
CHOICES = text_beside(__file__, "CHOICES")
OWN = text_beside(__file__, "OWN")


def module(arguments: str, *parts: str) -> str:
    body = "\n".join(parts)
    main = f"func.func @main({arguments}) {{{body}\n}}"
    return f"module attributes {{gpu.container_module}} {{ {KERNEL}\n{REGION}\n{main} }}"


PROGRAMS = {
    "own streams": module(f"%a: {BUFFER}, %first: i1", OWN, CHOICES),
    "streams as arguments": module(f"%p: {STREAM}, %a: {BUFFER}, %first: i1, %q: {STREAM}", CHOICES),
}
TARGETS = [("cpu", "fifo"), *(("simulator", order) for order in ORDERS)]


@pytest.mark.parametrize(("target", "order"), TARGETS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_regions_run_on_the_stream_that_was_chosen(name: str, first: bool, target: str, order: str) -> None:
    program = tuner.compile_program(PROGRAMS[name], target, order=order)
    a = np.arange(16, dtype=np.float32)
    program(a, first)
    assert np.array_equal(a, np.arange(16) + 4)
    assert not getattr(getattr(program, "device", None), "reports", ())


def test_work_that_the_program_leaves_unordered_on_two_streams_is_found() -> None:
    text = PROGRAMS["own streams"].replace("gpux.wait %s\n", "\n")
    program = tuner.compile_program(text, "simulator", order="lifo")
    program(np.arange(16, dtype=np.float32), True)
    assert any("nothing orders" in str(report) for report in program.device.reports)  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{"form": "tokens"}, {"form": "sync"}, {"pinned": True}])
def test_words_that_say_nothing_to_gpux_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(
        TunerError, match=rf"{next(iter(options))}.* cannot be combined with a program that .*\(GPUX\)"
    ):
        tuner.compile_program(PROGRAMS["own streams"], "simulator", **options)  # type: ignore[arg-type]


def test_a_region_of_several_blocks_is_refused() -> None:
    blocks = REGION.replace("  gpux.launch_func", "  cf.br ^next\n^next:\n  gpux.launch_func", 1)
    text = PROGRAMS["own streams"].replace(REGION, blocks)
    with pytest.raises(TunerError, match="found @region with several blocks and streams, allowed one block"):
        tuner.compile_program(text, "simulator")
