"""PyTorch models that ``benchmarks.models`` times."""

# 50 MFLOP or more, where code counts; less than 3, where a call's overhead does; blocks with rarer operators;
# whole networks and a wide block, compared with other runtimes too
LARGE, SMALL, RARER, NETWORK = "large", "small", "rarer", "network"
