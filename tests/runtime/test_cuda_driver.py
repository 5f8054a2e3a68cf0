"""Whether there is a driver, asked of the loader."""

import pytest

from tuner.runtime import cuda_driver


def test_a_library_that_loads_is_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libc.so.6")
    assert cuda_driver.has_driver()
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda-of-nobody.so.1")
    assert not cuda_driver.has_driver()
