"""A PostgreSQL server for tests, which are skipped where none can be started."""

import contextlib
from collections.abc import Iterator

import pytest

from tuner.elsewhere.fleet.local_fleet import NoServerError, server


@contextlib.contextmanager
def server_or_skip() -> Iterator[str]:
    """Gives the URL of a server; skips, with the reason, where there is none."""
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(server())
        except NoServerError as error:
            pytest.skip(str(error))
        yield url
