from collections.abc import Callable

import pytest

from tests.programs.lower.device_programs import (
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

async_tokens = pytest.importorskip("tuner.programs.lower.streams.async_tokens")
kernel_effects = pytest.importorskip("tuner.mlir.effects.kernel_effects")


def tokens_of(text: str, limit: int = 8) -> str:
    """Returns the host's text after the pass."""
    with main_function(text) as (module, function):
        async_tokens.use_tokens(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return host_text(module)


@pytest.mark.parametrize(
    ("name", "text"), [("two_chains", TWO_CHAINS), ("loop_with_host", LOOP_WITH_HOST), ("branch", BRANCH)]
)
def test_ir(name: str, text: str, golden: Callable[[str, str], None]) -> None:
    golden(f"async_tokens_{name}.mlir", tokens_of(text))


def test_a_limit_of_one_is_one_chain() -> None:
    assert tokens_of(TWO_CHAINS, limit=1).count("gpu.wait") == 2  # its begin and its end


def test_the_host_waits_in_passing_for_work_with_more_behind_it() -> None:
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


def test_a_function_without_device_work_stays() -> None:
    text = host_function(*store("a"))
    with main_function(text) as (module, _):
        assert tokens_of(text) == host_text(module)
