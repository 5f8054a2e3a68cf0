// ----- PAYLOAD

!row = tensor<512xf32>
func.func @f(%q: memref<2x512x4x{e}, {layout}> {tuner.guarded}, %k: memref<2x4x512xf32> {tuner.guarded},
             %mask: memref<512x512xf32> {mark}, %v: memref<2x512x3xf32> {tuner.guarded}) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant {chunks} : index
  %c512 = arith.constant 512 : index
  %one = arith.constant 1.0 : f32
  %start = tensor.empty() : !row
  %all = scf.for %head = %c0 to %c2 step %c1 iter_args(%of_head = %start) -> (!row) {
    %blocks = scf.for %block = %c0 to %c512 step %c48 iter_args(%of_block = %of_head) -> (!row) {
      %scores = scf.for %key = %c0 to %c512 step %c64 iter_args(%before = %of_block) -> (!row) {
        %score = tensor.insert %one into %before[%key] : !row
        scf.yield %score : !row
      } {keys, columns_scores_whole}
      %weights = scf.for %key = %c0 to %end step %c32 iter_args(%before = %scores) -> (!row) {
        %weight = tensor.insert %one into %before[%key] : !row
        scf.yield %weight : !row
      } {keys, chunks}
      %rows = scf.for %row = %c0 to %c48 step %c6 iter_args(%of_row = %weights) -> (!row) {
        %mixed = scf.for %key = %c0 to %c512 step %c1 iter_args(%before = %of_row) -> (!row) {
          %product = tensor.insert %one into %before[%key] : !row
          scf.yield %product : !row
        } {keys}
        scf.yield %mixed : !row
      } {rows_mixed_whole}
      scf.yield %rows : !row
    } {block}
    scf.yield %blocks : !row
  } {batch}
  return %all : !row
}
