"""Transform ops of ``tuner`` for CPUs: packing, and kernels in registers."""

# A new op is a new file and an entry here: op -> "module:class", imported when a script names the op.
OPS = {
    "amx_block": "tuner.mlir.cpu_ops.amx_block:AmxBlockOp",
    "convolution_block": "tuner.models.ops.convolutions.convolution_block:ConvolutionBlockOp",
    "convolution_tiles": "tuner.models.ops.convolutions.convolution_tiles:ConvolutionTilesOp",
    "depthwise_block": "tuner.models.ops.convolutions.depthwise_block:DepthwiseBlockOp",
    "drop_unit_batch": "tuner.mlir.cpu_ops.tile_shapes:DropUnitBatchOp",
    "lanes_along_k": "tuner.mlir.cpu_ops.lanes_along_k:LanesAlongKOp",
    "matrix_block": "tuner.mlir.cpu_ops.matrix_block:MatrixBlockOp",
    "overlap_tiles": "tuner.mlir.cpu_ops.tile_shapes:OverlapTilesOp",
    "pack_by_rows": "tuner.mlir.cpu_ops.pack_weights:PackByRowsOp",
    "pack_weights": "tuner.mlir.cpu_ops.pack_weights:PackWeightsOp",
    "pair_block": "tuner.mlir.cpu_ops.vnni_block:PairBlockOp",
    "prefetch_reads": "tuner.mlir.cpu_ops.prefetch_reads:PrefetchReadsOp",
    "quantized_matmul": "tuner.models.ops.quantized_matmul:QuantizedMatmulOp",
    "reorder_weights": "tuner.models.ops.convolutions.reorder_weights:ReorderWeightsOp",
    "skip_hidden_keys": "tuner.models.ops.skip_hidden_keys:SkipHiddenKeysOp",
    "vnni_block": "tuner.mlir.cpu_ops.vnni_block:VnniBlockOp",
    "widen_operands": "tuner.mlir.cpu_ops.widen_operands:WidenOperandsOp",
}

# What other packages may import; the rest is inside.
__all__ = ["amx_tiles", "buffer_matmul", "instructions", "register_block", "vector_lanes", "vnni_packing"]
