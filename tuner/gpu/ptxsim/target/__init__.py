"""The simulated GPU as a target: verifies candidates, predicts cycles of their machine code."""
