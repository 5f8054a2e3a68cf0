"""How many trials one run should keep pending: more keep devices busy, but know fewer outcomes."""

from typing import Any

QUESTION = "one run on all devices"  # of the simulated rows that are looked at


def soonest_rows(simulated: list[dict[str, Any]], staleness: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns for each fleet of one run the time to 95 % of the optimum's speed, shortest first."""
    trials = {row["pending"]: row["median_trials"] for row in staleness}
    singles = [row for row in simulated if row["question"] == QUESTION]
    rows = [
        {
            "devices": row["fleet"]["devices"],
            "pending": row["fleet"]["pending"],
            "idle": row["idle"],
            "seconds": round(trials[row["fleet"]["pending"]] / row["trials_per_s"], 1),
        }
        for row in singles
        if trials.get(row["fleet"]["pending"]) is not None
    ]
    return sorted(rows, key=lambda row: (row["devices"], row["seconds"]))
