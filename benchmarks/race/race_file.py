"""The results file of a race, read."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from benchmarks.race.peers import BASELINE
from benchmarks.race.rows import Row
from benchmarks.results_file import RESULTS

FILE = RESULTS / "race.json"
LIMITED_FILE = RESULTS / "race_avx2.json"  # of a processor limited to AVX2
ALIGNED, SHIFTED = "0", "16"  # bytes from a cache line, as the results file has them
PICTURE_DTYPE = "f32"


@final
@dataclass(frozen=True)
class Race:
    """The results file of a race."""

    document: dict[str, Any]

    @property
    def rows(self) -> list[Row]:
        """Returns a row for each matmul, peer and budget."""
        rows: list[Row] = self.document["rows"]
        return rows

    @property
    def peers(self) -> dict[str, Row]:
        """Returns title, version and settings of each peer by its name."""
        peers: dict[str, Row] = self.document["settings"]["peers"]
        return peers

    @property
    def longest_s(self) -> float:
        """Returns the largest budget in seconds."""
        budgets_s: list[float] = self.document["settings"]["budgets"]
        return max(budgets_s)

    @property
    def machine(self) -> str:
        """Returns on which machine the race was run."""
        machine = self.document["machine"]
        isa = machine["isa"].upper().replace("AVX512", "AVX-512")
        return f"{machine['processor']}, {isa}"

    @property
    def spread(self) -> float:
        """Returns the largest spread of the baseline's times in the rounds of a matmul: how quiet it was."""
        spreads = [
            part["spread"]
            for row in self.rows
            if row["peer"] == BASELINE
            for part in row["offsets"].values()
            if part.get("spread") is not None
        ]
        return max(spreads, default=0.0)

    def title(self, row: Row) -> str:
        """Returns "XTC, 60 s": peer and budget of a row."""
        title: str = self.peers[row["peer"]]["title"]
        return title if row["budget_s"] is None else f"{title}, {row['budget_s']:g} s"

    def has_time(self, peer: str, matmul: Row, offset: str) -> bool:
        """True if a peer's kernel of a row's budget, else of the largest, was timed on the row's matmul."""
        same_budget = [row for row in self.rows if row["budget_s"] == matmul["budget_s"]]
        rows = self.last_rows() if matmul["budget_s"] is None else same_budget
        return any(
            row["offsets"].get(offset, {}).get("median_s") is not None
            for row in rows
            if (row["peer"], row["shape"], row["dtype"]) == (peer, matmul["shape"], matmul["dtype"])
        )

    def last_rows(self) -> list[Row]:
        """Returns the rows of each matmul's largest budget, and those without a budget."""
        largest: dict[tuple[str, str], float] = {}
        for row in self.rows:
            matmul = row["shape"], row["dtype"]
            largest[matmul] = max(largest.get(matmul, 0.0), row["budget_s"] or 0.0)
        return [row for row in self.rows if row["budget_s"] in (None, largest[row["shape"], row["dtype"]])]


def stored_race(file: Path = FILE) -> Race | None:
    """Returns the race of a results file; None where it is not there."""
    return Race(json.loads(file.read_text())) if file.exists() else None
