"""PyTorch models that ``benchmarks.models`` times."""

# 50 MFLOP or more, where code counts; less than 3, where a call's overhead does; blocks with rarer operators
LARGE, SMALL, RARER = "large", "small", "rarer"
