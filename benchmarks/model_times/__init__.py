"""How ``benchmarks.models`` times a model: ways to run it, interleaved slices, ratios with intervals."""
