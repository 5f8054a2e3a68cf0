"""The real compiler, search and measurement, without rivals and processes that take seconds."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.tuning import fakes
from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.requests import CampaignMember, CampaignSettings, RunRequest
from tuner.db.store import Store
from tuner.targets.backends import Backends
from tuner.targets.children import apply_script, find_failing_op
from tuner.targets.registry import TARGETS, real_backends
from tuner.tuning import run_steps
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.remeasurement import remeasure_top_trials
from tuner.tuning.request import run_settings

BRIEF = Effort(budget_s=0.02, min_samples=5, max_samples=20)  # no test here asks how sure its times are


def real_candidates() -> Backends:
    """Returns the real thing with a baseline and a roofline that nobody measures.

    Scripts are applied in this process; tests/targets/test_registry.py applies them in a child process.
    """
    quick = {"baseline": fakes.baseline, "roofline": fakes.FAKE.roofline}
    kinds = {name: fakes.changed(kind, **quick) for name, kind in TARGETS.items()}
    return fakes.changed(real_backends(), targets=kinds, apply=applied, failing_op=find_failing_op)


def applied(script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()) -> str:
    try:
        return apply_script(script, payload, allows_effects, trailing)
    except CandidateError as error:
        kind = UsageError if error.stage is Stage.BIND else TunerError
        raise kind(f"apply: {error.reason}") from error


@contextlib.contextmanager
def brief_remeasurement() -> Iterator[None]:
    """Lets the final re-measurement of runs inside take little time for each candidate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            run_steps,
            "remeasure_top_trials",
            lambda runner, trials, _, bound_of: remeasure_top_trials(runner, trials, BRIEF, bound_of),
        )
        yield


def real_campaign(store: Store, backends: Backends, problems: tuple[Problem, ...]) -> None:
    """Tunes problems on this processor as one campaign of four trials."""
    requests = (RunRequest(each, target="cpu") for each in problems)
    found = tuple(CampaignMember(run_settings(each, backends), "", 1) for each in requests)
    begin_campaign(CampaignSettings("", 4, None, 0, ()), found, backends, store, Interruption())
