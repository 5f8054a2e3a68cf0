"""Child processes that compile, verify and time candidates, and what asks them."""
