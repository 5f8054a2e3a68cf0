"""Transform ops that upstream lacks, defined in Python: one per file. Scripts call them in generic syntax."""


def load_own_ops() -> None:
    """Registers this project's transform ops in the current context."""
