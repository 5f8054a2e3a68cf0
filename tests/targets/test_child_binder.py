"""A user's own templates are bound in a child process: what never ends is a failure of the candidate."""

from functools import partial
from pathlib import Path

import pytest

from tuner.core.candidate import Candidate, ChosenStrategy
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError
from tuner.core.problem import Matmul
from tuner.runtime.workers.worker import call_in_child
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.children import MEMORY_BYTES, ChildBinder, binding
from tuner.targets.interface import Bind

PROBLEM = Matmul(8, 16, 4)
VARIABLES = (("m", 8), ("n", 16), ("k", 4))
# For years in many operations, for hours in one, to 6 GiB, or well behaved.
TEMPLATE = """{% if how == "loop" %}{% for a in range(99999) %}{% for b in range(99999) %}
{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}
{% elif how == "power" %}{{ 3 ** (n ** 8) % 10 }}
{% elif how == "grow" %}{% set kept = [] %}
{% for a in range(99999) %}{% set _ = kept.append(n ~ "x" * 2 ** 16) %}{% endfor %}
{% else %}how: {{ how }} {{ m }}{% endif %}"""


def bound(folder: Path, timeout_s: float = 60.0) -> Bind:
    script = folder / "mine.mlir.j2"
    script.write_text(TEMPLATE)
    return binding((ChosenStrategy("mine", script),), PROBLEM, VARIABLES, 1, timeout_s)


def mine(how: str) -> Candidate:
    return Candidate.of("mine", {"how": how})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["loop", "power"])
def test_a_template_that_never_ends_fails_to_bind(tmp_path: Path, how: str) -> None:
    bind = bound(tmp_path, timeout_s=0.5)
    with pytest.raises(CandidateError) as caught:
        bind(mine(how))
    assert caught.value.failure == Failure(Stage.BIND, "timed out after 0.5 s")


@pytest.mark.slow
def test_a_template_that_grows_too_large_fails_to_bind_and_the_next_is_bound(tmp_path: Path) -> None:
    bind = bound(tmp_path)
    with pytest.raises(CandidateError, match=rf"^exceeded {MEMORY_BYTES >> 20} MiB of memory$") as caught:
        bind(mine("grow"))
    assert caught.value.stage is Stage.BIND
    assert bind(mine("fast")).text == "how: fast 8\n"


def test_a_child_binds_as_this_process_does(tmp_path: Path) -> None:
    bind = bound(tmp_path)
    here = Binder((load_strategy("mine", tmp_path / "mine.mlir.j2"),), PROBLEM, VARIABLES, 1)
    for how in ("a", "b"):
        assert bind(mine(how)) == here.bind(mine(how))
    for wrong in (Candidate.of("mine", {}), Candidate.of("other", {})):
        failures = []
        for one in (bind, here.bind):
            with pytest.raises(CandidateError) as caught:
                one(wrong)
            failures.append(caught.value.failure)
        assert failures[0] == failures[1]


def test_the_child_ends_with_its_binder(tmp_path: Path) -> None:
    script = tmp_path / "mine.mlir.j2"
    script.write_text(TEMPLATE)
    binder = ChildBinder(Binder((load_strategy("mine", script),), PROBLEM, VARIABLES, 1), 60.0)
    binder.bind(mine("fast"))
    worker = binder.worker
    assert worker.child is not None
    del binder
    assert worker.child is None


def test_what_is_shipped_is_bound_here() -> None:
    bind = binding((ChosenStrategy("matmul_cpu_packed"),), PROBLEM, VARIABLES, 1)
    assert isinstance(getattr(bind, "__self__", None), Binder)


def fail(stage: Stage) -> None:
    raise CandidateError(stage, "too wide")


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "is_of_user"), [(Stage.BIND, True), (Stage.COMPILE, False)])
def test_what_does_not_even_parse_is_the_users_mistake_and_what_fails_later_is_not(
    stage: Stage, is_of_user: bool
) -> None:
    with pytest.raises(TunerError, match=r"^apply: too wide$") as caught:
        call_in_child("apply", partial(fail, stage), 60.0)
    assert isinstance(caught.value, UsageError) == is_of_user
    assert not isinstance(caught.value, CandidateError)
