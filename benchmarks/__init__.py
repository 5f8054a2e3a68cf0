"""What is timed, fuzzed or checked on a GPU by hand, and the stand-ins that tests share."""
