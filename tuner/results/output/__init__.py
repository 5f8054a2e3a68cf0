"""Formats values as lines, tables and JSON. ``files`` writes files; only ``*progress`` prints.

In all modules ``columns`` is the width of the terminal in characters, None without a limit; ``database_text``
is the ``--db`` option of suggested commands, with a leading space, "" for the default database.
"""

# What other packages may import; the rest is inside.
__all__ = [
    "ablation",
    "campaign_progress",
    "campaign_tables",
    "compile_progress",
    "files",
    "formatting",
    "json_documents",
    "program_tables",
    "progress",
    "run_result",
    "tables",
    "templates",
    "trial_facts",
]
