"""Compiled templates of shipped strategies, kept in a file each, as Python keeps compiled modules."""

import contextlib
import sys
from pathlib import Path
from typing import final

import jinja2
from jinja2.bccache import Bucket

from tuner.core.text_files import replace_file


@final
class CompiledTemplates(jinja2.BytecodeCache):
    """Keeps templates compiled to Python's byte code in a folder: to compile some takes 0.2 s.

    A file holds for one text of a template, one version of Python and of Jinja2. Where files cannot be
    written, or Python is not to write byte code, templates are compiled in each process.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: next to the templates, where nobody writes who may not change these."""
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            # of another text, or damaged: the bucket stays empty
            bucket.bytecode_from_string(self._file(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            replace_file(self._file(bucket), bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.jinja2-{jinja2.__version__}"
