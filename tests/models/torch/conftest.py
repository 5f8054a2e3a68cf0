"""Fixtures of the tests that compile by ``torch.compile``."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def fresh_back_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The back end has compiled nothing yet; eager mode gets what is refused, and is never the faster one."""
    from torch import _dynamo as dynamo

    import tuner.torch
    from tuner.models.torch import dynamo_backend

    monkeypatch.setattr(dynamo_backend, "FALLBACK", "eager")
    monkeypatch.setattr(dynamo_backend, "is_eager_faster", lambda *_: False)
    dynamo.reset()
    tuner.torch.graph_counts(reset=True)
    yield
    dynamo.reset()
    tuner.torch.graph_counts(reset=True)
