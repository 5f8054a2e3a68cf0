"""One pool of configurations on the matmuls of two transformers: portfolios, dispatch, first use."""
