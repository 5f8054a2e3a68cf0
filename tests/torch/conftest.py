"""Fixtures of the tests that compile by ``torch.compile``."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def fresh_back_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The back end has compiled nothing yet, and leaves graphs to eager mode."""
    from torch import _dynamo as dynamo

    import tuner.torch
    from tuner.torch import dynamo_backend

    monkeypatch.setattr(dynamo_backend, "FALLBACK", "eager")
    dynamo.reset()
    tuner.torch.graph_counts(reset=True)
    yield
    dynamo.reset()
    tuner.torch.graph_counts(reset=True)
