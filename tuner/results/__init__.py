"""What past runs say: the best trial, past runs, differences, regressions, reports."""
