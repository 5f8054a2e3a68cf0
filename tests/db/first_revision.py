"""What a database of revision 0001 held: one run of one trial, of the values in ``tests.db.values``."""

ROWS = (
    """INSERT INTO environment (content_sha256, fingerprint, mlir, packages, pipeline_sha256) VALUES (
    '9149ecf47265f59ef97d129ad7e32a0bbb0438ce607633c7a754904ddf2659a6',
    'LLVM 23.0.0git numba-cuda-mlir==0.6.1 torch-mlir==20261001 pipeline:abababababab', 'LLVM 23.0.0git',
    '[["numba-cuda-mlir", "0.6.1"], ["torch-mlir", "20261001"]]',
    'abababababababababababababababababababababababababababababababab')""",
    """INSERT INTO machine (content_sha256, name, processor, isa, has_bf16, physical_cores, logical_cores,
    l1_bytes, l2_bytes, l3_bytes, memory_bytes) VALUES (
    '960d851c0f7565411b9a259033fa998898e7952a294374f343e4129a1cdb8d10', 'Xeon Platinum 8481C avx512',
    'Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz', 'avx512', true, 1, 2,
    49152, 2097152, 110100480, 51539607552)""",
    """INSERT INTO problem ("key", operation, shape, dtype, layout, epilogue) VALUES (
    'matmul 512x512x512 f32 nn none', 'matmul', '512x512x512', 'f32', 'nn', 'none')""",
    """INSERT INTO script (sha256, text) VALUES (
    '84cb1db894869a7ec5d4f9409fffb59f22a1f54a0cc488fa2c81e89a704af0fb',
    'module attributes {transform.with_named_sequence} {}
')""",
    """INSERT INTO run (uuid, created, problem_id, machine_id, environment_id, target, threads, strategies,
    space_yaml, sampler, seed, trials, budget_s, workers, fresh, tuner_version, load_average, status) VALUES (
    '8b2d31d8-9585-48f8-94fc-979216a85f25', '2026-11-20 06:23:51', 1, 1, 1, 'cpu', 1,
    '["matmul_cpu_packed", "matmul_cpu_direct"]', 'strategies: {}
', 'tpe', 7, 100, 60.0, 2, false, '0.1.0', 0.25, 'running')""",
    """INSERT INTO trial (run_id, number, "row", strategy, knobs, proposed, finished, status, stage_s,
    script_sha256, artifact_sha256) VALUES (
    1, 0, 0, 'matmul_cpu_packed', '{"order": "mnk", "tile_m": 8}', '2026-11-20 06:23:52',
    '2026-11-20 06:23:53', 'measured', '[["bind", 0.001], ["compile", 0.08]]',
    '84cb1db894869a7ec5d4f9409fffb59f22a1f54a0cc488fa2c81e89a704af0fb', 'c0de')""",
    """INSERT INTO measurement (trial_id, kind, samples_s, inner_calls, median_s, low_s, high_s, is_complete)
    VALUES (1, 'first', '[0.45, 0.5, 0.55]', 4, 0.5, 0.45, 0.55, true)""",
)
