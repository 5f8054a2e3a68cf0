"""The op ``tuner.wgmma_pipeline``: plan, mbarriers, producer, consumer, epilogue, launch."""
