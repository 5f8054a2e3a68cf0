"""The stand-in for libcuda, built once for all child processes of a test."""

import pytest

from tests.support.stub_driver import stub_library


@pytest.fixture
def built_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_DRIVER", str(stub_library()))
