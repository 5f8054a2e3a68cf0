"""The epilogues of tests that try each combination; ``tests/payload/test_epilogues.py`` has all."""

EPILOGUES = ("none", "bias_relu")
