"""The parts of ``tuner.wgmma_pipeline``: layouts, mbarriers, producer, consumer, epilogue, launch."""
