"""Programs on device memory become asynchronous: on streams of the caller, or by tokens."""

from collections.abc import Callable

import pytest

from tests.programs.lowering.device_programs import (
    BRANCH,
    LOOP_WITH_HOST,
    TWO_CHAINS,
    copy,
    host_function,
    host_text,
    launch,
    main_function,
    store,
)

pytestmark = pytest.mark.mlir

async_streams = pytest.importorskip("tuner.programs.streams.async_streams")
kernel_effects = pytest.importorskip("tuner.mlir.effects.memory_effects")


def streams_of(text: str, limit: int = 8) -> tuple[str, int]:
    """Returns the host's text after the pass, and the number of streams."""
    with main_function(text) as (module, function):
        count = async_streams.use_streams(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return host_text(module), count


@pytest.mark.parametrize(
    ("name", "text", "streams"),
    [("two_chains", TWO_CHAINS, 2), ("loop_with_host", LOOP_WITH_HOST, 3), ("branch", BRANCH, 4)],
)
def test_ir_of_streams(name: str, text: str, streams: int, golden: Callable[[str, str], None]) -> None:
    changed, count = streams_of(text)
    golden(f"async_streams_{name}.mlir", changed)
    assert count == streams


def test_streams_are_the_last_arguments() -> None:
    text = host_function(launch("inc", "a"), launch("inc", "b"), others="%x: f32 {tuner.note = 1}")
    changed, count = streams_of(text)
    assert count == 2
    assert "%arg2: f32 {tuner.note = 1 : i64}, %arg3: !llvm.ptr, %arg4: !llvm.ptr) {" in changed


def test_one_stream_needs_no_events() -> None:
    changed, count = streams_of(TWO_CHAINS, limit=1)
    assert count == 1
    assert "mgpu" not in changed


def test_the_limit_holds_for_bodies_too() -> None:
    assert streams_of(BRANCH, limit=2)[1] == 2
    assert streams_of(LOOP_WITH_HOST, limit=1)[1] == 1


def test_a_function_without_device_work_takes_the_callers_stream_alone() -> None:
    changed, count = streams_of(host_function(*store("a")))
    assert count == 1
    assert "mgpu" not in changed


def test_the_host_waits_for_all_of_a_stream_only_when_nothing_came_behind() -> None:
    last = streams_of(host_function(launch("inc", "a"), *store("a")))[0]
    assert "@mgpuStreamSynchronize" in last
    assert "mgpuEvent" not in last
    behind = streams_of(host_function(launch("twice", "a", "b"), copy("c", "b"), *store("a"), buffers="abc"))[
        0
    ]
    assert "@mgpuEventSynchronize" in behind
    assert "mgpuStreamSynchronize" not in behind


def tokens_of(text: str, limit: int = 8) -> str:
    """Returns the host's text after the pass."""
    with main_function(text) as (module, function):
        async_streams.use_tokens(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return host_text(module)


@pytest.mark.parametrize(
    ("name", "text"), [("two_chains", TWO_CHAINS), ("loop_with_host", LOOP_WITH_HOST), ("branch", BRANCH)]
)
def test_ir_of_tokens(name: str, text: str, golden: Callable[[str, str], None]) -> None:
    golden(f"async_tokens_{name}.mlir", tokens_of(text))


def test_a_limit_of_one_is_one_chain() -> None:
    assert tokens_of(TWO_CHAINS, limit=1).count("gpu.wait") == 2  # its begin and its end


def test_the_host_waits_in_passing_for_work_with_more_after_it() -> None:
    text = tokens_of(host_function(launch("twice", "a", "b"), copy("c", "b"), *store("a"), buffers="abc"))
    waits = [line.strip() for line in text.splitlines() if "gpu.wait" in line]
    launched, copied = (
        line.split(" = ")[0].strip()
        for line in text.splitlines()
        if " async [" in line and "wait" not in line
    )
    assert waits[1].endswith(f"= gpu.wait async [{launched}]")
    assert waits[2] == f"gpu.wait [{waits[1].split(' = ')[0]}]"
    assert waits[-1] == f"gpu.wait [{copied}]"


def test_a_function_without_device_work_takes_no_tokens() -> None:
    text = host_function(*store("a"))
    with main_function(text) as (module, _):
        assert tokens_of(text) == host_text(module)
