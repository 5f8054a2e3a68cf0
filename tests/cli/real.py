"""The real compiler, search and measurement, but for what is measured next to candidates for seconds."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.tuning import fakes
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.requests import CampaignMember, CampaignSettings, RunRequest
from tuner.db.store import Store
from tuner.targets.backends import Backends
from tuner.targets.registry import TARGETS, real_backends
from tuner.tuning import run_steps
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings
from tuner.tuning.run_steps import remeasure_top_trials

BRIEF = Effort(budget_s=0.02, min_samples=5, max_samples=20)  # no test here asks how sure its times are


def real_candidates() -> Backends:
    """Returns the real thing with a baseline and a roofline that nobody measures."""
    quick = {"baseline": fakes.baseline, "roofline": fakes.FAKE.roofline}
    kinds = {name: fakes.changed(kind, **quick) for name, kind in TARGETS.items()}
    return fakes.changed(real_backends(), targets=kinds)


@contextlib.contextmanager
def brief_remeasurement() -> Iterator[None]:
    """Lets the final re-measurement of runs inside take little time for each candidate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            run_steps,
            "remeasure_top_trials",
            lambda runner, trials, _: remeasure_top_trials(runner, trials, BRIEF),
        )
        yield


def real_campaign(store: Store, backends: Backends, problems: tuple[Problem, ...]) -> None:
    """Tunes problems on this processor as one campaign of four trials."""
    requests = (RunRequest(each, target="cpu") for each in problems)
    found = tuple(CampaignMember(run_settings(each, backends), "", 1) for each in requests)
    begin_campaign(CampaignSettings("", 4, None, 0, ()), found, backends, store, Interruption())
