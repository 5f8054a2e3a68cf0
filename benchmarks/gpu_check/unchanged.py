"""Checks that passed before on the same code: the results file has its hash, and they are not asked again."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.checks import CheckOutcome, passed
from tuner.core.compiled_code import KernelCode

SHA256, SINCE = "ptx_sha256", "since"
OF_ROW = ("part", "check", "status", "words", "seconds")  # keys of a row that are no facts


def ptx_sha256(program: KernelCode) -> str:
    """Returns the SHA-256 (hex) of a program's PTX."""
    return hashlib.sha256(program.text.encode()).hexdigest()


@dataclass(frozen=True)
class EarlierRows:
    """The rows of an earlier results file that passed and have the hash of their code."""

    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)  # (part, check) -> row
    date: str = ""

    @classmethod
    def read(cls, path: Path | None) -> "EarlierRows":
        """Reads a results file; without one, or where it is none, nothing has passed."""
        if path is None:
            return cls()
        try:
            document = json.loads(path.read_text())
            rows = {(row["part"], row["check"]): row for row in document["rows"] if _counts(row)}
            return cls(rows, str(document["date"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def or_ask(self, part: str, check: str, sha256: str, ask: Callable[[], CheckOutcome]) -> CheckOutcome:
        """Returns the earlier outcome of the same code, else that of ``ask()``; both with the hash."""
        row = self.rows.get((part, check))
        if row is not None and row[SHA256] == sha256:
            since = row.get(SINCE, self.date)
            facts = {key: value for key, value in row.items() if key not in OF_ROW}
            return passed(f"same code as it passed on {since}", **facts | {SINCE: since})
        outcome = ask()
        return CheckOutcome(outcome.status, outcome.words, outcome.facts | {SHA256: sha256})


def _counts(row: dict[str, Any]) -> bool:
    return row["status"] == "passed" and SHA256 in row
