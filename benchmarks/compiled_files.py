"""Empty folders for compiled files, so that a benchmark compiles as on a machine that has none."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

CACHES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "TORCHINDUCTOR_CACHE_DIR")


@contextmanager
def new_caches() -> Iterator[None]:
    """Context manager: this process and its children have empty folders for compiled files."""
    before = {name: os.environ.get(name) for name in CACHES}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: f"{folder}/{name}" for name in CACHES})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
