"""Follows a page: its blocks are written, applied and run; one that edits the sources has a copy of them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COPIED = ("tuner", "db", "strategies", "search_space.yaml", "pyproject.toml")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
# In the comment that a file's block begins with:
FILE_NAME = re.compile(r"(?:#|//|/\*|\{#-) ([\w/]+(?:\.\w+)+)")
STEP_TIMEOUT_S = 300.0
# The guide's sources are what is imported, and compiled once for all processes.
KEPT_OUT = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "TUNER_DB")


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def file(self) -> str | None:
        found = FILE_NAME.match(self.text)
        return None if found is None else found.group(1)


def sections(page: str) -> dict[str, tuple[Block, ...]]:
    titles = [*SECTION.finditer(page)]
    ends = [*(title.start() for title in titles), len(page)][1:]
    parts = {title.group(1): page[title.end() : end] for title, end in zip(titles, ends, strict=True)}
    return {name: blocks_of(part) for name, part in parts.items()}


def blocks_of(text: str) -> tuple[Block, ...]:
    return tuple(Block(*found) for found in BLOCK.findall(text))


OWN_DATABASE = Path("data", "tuner", "tuner.db")  # of a copy's folder: the user's own


class Guide:
    """Follows a page in a folder: its files are written there, its commands run there."""

    def __init__(self, folder: Path, sources: Path = ROOT) -> None:
        """``sources`` is the repository, or the copy of it, that the commands import."""
        self.folder = folder
        self._sources = sources
        commands = folder / "bin"
        commands.mkdir()
        for name, options in (("python", ""), ("tuner", " -m tuner")):
            (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable}{options} "$@"\n')
            (commands / name).chmod(0o755)

    def follow(self, blocks: tuple[Block, ...]) -> str:
        """Does what the blocks say in their order; returns what the last commands printed."""
        printed = ""
        for block in blocks:
            if block.language == "diff":
                self._change(block.text)
            elif block.language == "sh":
                printed = self._run(block.text)
            elif block.language == "text":
                missing = [line for line in block.text.splitlines() if line not in printed.splitlines()]
                assert not missing, f"not printed: {missing}\n{printed}"
            else:
                assert block.file is not None, f"a block of {block.language} without a file's name"
                path = self.folder / block.file
                path.parent.mkdir(exist_ok=True)
                path.write_text(block.text)
        return printed

    def _run(self, commands: str) -> str:
        """Runs commands up to the first that fails; both outputs together."""
        variables = {name: value for name, value in os.environ.items() if name not in KEPT_OUT}
        variables |= {"PYTHONPATH": str(self._sources), "XDG_DATA_HOME": str(self.folder / "data")}
        variables["PATH"] = f"{self.folder / 'bin'}:{variables['PATH']}"
        both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command, limit_s = ["bash", "-ec", commands], STEP_TIMEOUT_S
        done = subprocess.run(command, cwd=self.folder, env=variables, timeout=limit_s, check=False, **both)
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        printed: str = done.stdout
        return printed

    def _change(self, diff: str) -> None:
        """Applies a diff whose context is whole lines: ``--- file``, then runs of lines with ' ', - and +."""
        name, *lines = diff.splitlines()
        path = self.folder / name.removeprefix("--- ")
        text = path.read_text()
        for before, after in hunks(lines):
            assert text.count(before) == 1, f"{path.name}: found {text.count(before)} times:\n{before}"
            text = text.replace(before, after)
        path.write_text(text)


def guide_in_copy(folder: Path, *more: str) -> Guide:
    """Returns a guide that may edit the sources: ``folder`` has a copy of them, and of ``more`` paths."""
    for path in (*COPIED, *more):
        source, target = ROOT / path, folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)
    return Guide(folder, folder)


def hunks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yields (before, after) of the hunks of a diff, which ``@@`` divides."""
    for hunk in "\n".join(lines).split("\n@@\n"):
        kept = hunk.split("\n")
        yield (
            "".join(f"{line[1:]}\n" for line in kept if line[0] in " -"),
            "".join(f"{line[1:]}\n" for line in kept if line[0] in " +"),
        )
