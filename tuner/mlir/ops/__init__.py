"""Transform ops that upstream lacks, defined in Python, one per file; scripts call them in generic syntax."""

import sys

from tuner.mlir.bindings import ext
from tuner.mlir.ops.amx_block import AmxBlockOp
from tuner.mlir.ops.bound_loads import BoundLoadsOp
from tuner.mlir.ops.bypass_l1 import BypassL1Op
from tuner.mlir.ops.convolution_block import ConvolutionBlockOp
from tuner.mlir.ops.convolution_tiles import ConvolutionTilesOp
from tuner.mlir.ops.count_stages import CountStagesOp
from tuner.mlir.ops.dialect import (
    DIALECT,
    ConsumingEffects,
    InPlaceEffects,
    InPlaceTransform,
    TunerDialect,
)
from tuner.mlir.ops.drop_unit_batch import DropUnitBatchOp
from tuner.mlir.ops.element_types import ElementTypesOp
from tuner.mlir.ops.empty_matches import attach_to_context
from tuner.mlir.ops.finish_stores import FinishStoresOp
from tuner.mlir.ops.fix_transposed_a import FixTransposedAOp
from tuner.mlir.ops.flat_copies import FlatCopiesOp
from tuner.mlir.ops.forward_stores import ForwardStoresOp
from tuner.mlir.ops.insert_barriers import InsertBarriersOp
from tuner.mlir.ops.merge_ldmatrix import MergeLdmatrixOp
from tuner.mlir.ops.overlap_tiles import OverlapTilesOp
from tuner.mlir.ops.pack_by_rows import PackByRowsOp
from tuner.mlir.ops.pack_weights import PackWeightsOp
from tuner.mlir.ops.pad_views import PadViewsOp
from tuner.mlir.ops.pair_block import PairBlockOp
from tuner.mlir.ops.prefetch_fragments import PrefetchFragmentsOp
from tuner.mlir.ops.prefetch_reads import PrefetchReadsOp
from tuner.mlir.ops.reorder_weights import ReorderWeightsOp
from tuner.mlir.ops.set_aside_epilogue import SetAsideEpilogueOp
from tuner.mlir.ops.shared_layout import SharedLayoutOp
from tuner.mlir.ops.split_k import SplitKOp
from tuner.mlir.ops.swizzle_blocks import SwizzleBlocksOp
from tuner.mlir.ops.unroll_inner_loops import UnrollInnerLoopsOp
from tuner.mlir.ops.use_fp8 import UseFp8Op
from tuner.mlir.ops.use_tf32 import UseTf32Op
from tuner.mlir.ops.vnni_block import VnniBlockOp
from tuner.mlir.ops.wgmma_pipeline import WgmmaPipelineOp

# A new op is a new file and an entry here.
OPS = (
    AmxBlockOp,
    PrefetchFragmentsOp,
    PrefetchReadsOp,
    OverlapTilesOp,
    PackByRowsOp,
    PackWeightsOp,
    PadViewsOp,
    PairBlockOp,
    UnrollInnerLoopsOp,
    BoundLoadsOp,
    BypassL1Op,
    ConvolutionBlockOp,
    ConvolutionTilesOp,
    CountStagesOp,
    DropUnitBatchOp,
    ElementTypesOp,
    FinishStoresOp,
    FixTransposedAOp,
    FlatCopiesOp,
    ForwardStoresOp,
    InsertBarriersOp,
    MergeLdmatrixOp,
    ReorderWeightsOp,
    SetAsideEpilogueOp,
    SharedLayoutOp,
    SplitKOp,
    SwizzleBlocksOp,
    UseFp8Op,
    UseTf32Op,
    VnniBlockOp,
    WgmmaPipelineOp,
)
CONSUMING = (PrefetchFragmentsOp,)  # replace the payload ops of their handle


def load_custom_ops() -> None:
    """Registers the transform ops of the ``tuner`` dialect in the current MLIR context."""
    TunerDialect.load(reload=hasattr(TunerDialect, "_mlir_module"))
    # The bindings search for a Python module of the dialect at each use, until they find one.
    folder = ext.__name__.rpartition(".")[0]
    sys.modules.setdefault(f"{folder}.{DIALECT}", sys.modules[TunerDialect.__module__])
    for op in OPS:
        InPlaceTransform.attach(op.OPERATION_NAME)
        effects = ConsumingEffects if op in CONSUMING else InPlaceEffects
        effects.attach(op.OPERATION_NAME)
    attach_to_context()
