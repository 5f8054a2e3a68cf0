"""The results database: tables, migrations, and the store that reads and writes values."""

# What other packages may import; the rest is inside.
__all__ = ["address", "latest_ids", "pending_trials", "remote_results", "store"]
