"""The PTX simulator: interprets PTX, as given to ptxas, on numpy arrays, one lane per thread; finds defects.

    from tuner.simulator.ptx.launch import simulate
    found = simulate(ptx, "matmul", (2, 2, 1), (128, 1, 1), arguments=(a, b, c), dynamic_shared_bytes=49152)
    found.races, found.conflict_ratio, found.instructions

Asynchronous operations take effect as late as allowed: their destination is NaN until a thread waits for
them.
"""
