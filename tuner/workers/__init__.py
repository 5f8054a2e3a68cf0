"""Child processes that compile, verify and time candidates, and benches that use these processes."""
