"""The PTX simulator: executes the PTX that ptxas gets on numpy, one lane per thread, and finds its defects.

    from tuner.simulator.ptx.launch import simulate
    found = simulate(ptx, "matmul", (2, 2, 1), (128, 1, 1), arguments=(a, b, c), dynamic_shared_bytes=49152)
    found.races, found.conflict_ratio, found.instructions

Asynchronous operations take effect as late as they may: what they write is NaN until it is waited for.
"""
