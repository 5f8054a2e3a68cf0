"""Payloads whose fusions become one kernel: the smallest form of layers of models."""

from tests.texts import text_beside

ALL, ROW = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"

LAYER_NORM = f"""
#all = {ALL}
#row = {ROW}
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<6x75xf32>, %scale: tensor<75xf32>, %shift: tensor<75xf32>) -> tensor<6x75xf32> {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 75.0 : f32
  %small = arith.constant 1.0e-5 : f32
  %one = tensor.empty() : tensor<6xf32>
  %whole = tensor.empty() : tensor<6x75xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%one : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
    ins(%x : tensor<6x75xf32>) outs(%zeros : tensor<6xf32>) {{
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  }} -> tensor<6xf32>
  %centered = linalg.generic {{indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}}
    ins(%x, %sum : tensor<6x75xf32>, tensor<6xf32>) outs(%whole : tensor<6x75xf32>) {{
  ^bb0(%in: f32, %total: f32, %old: f32):
    %mean = arith.divf %total, %count : f32
    %distance = arith.subf %in, %mean : f32
    linalg.yield %distance : f32
  }} -> tensor<6x75xf32>
  %squares = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
    ins(%centered : tensor<6x75xf32>) outs(%zeros : tensor<6xf32>) {{
  ^bb0(%in: f32, %old: f32):
    %square = arith.mulf %in, %in : f32
    %new = arith.addf %square, %old : f32
    linalg.yield %new : f32
  }} -> tensor<6xf32>
  %root = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}} ins(%squares : tensor<6xf32>) outs(%one : tensor<6xf32>) {{
  ^bb0(%total: f32, %old: f32):
    %mean = arith.divf %total, %count : f32
    %safe = arith.addf %mean, %small : f32
    %inverse = math.rsqrt %safe : f32
    linalg.yield %inverse : f32
  }} -> tensor<6xf32>
  %result = linalg.generic {{indexing_maps = [#all, #row, #column, #column, #all],
    iterator_types = ["parallel", "parallel"]}}
    ins(%centered, %root, %scale, %shift : tensor<6x75xf32>, tensor<6xf32>, tensor<75xf32>, tensor<75xf32>)
    outs(%whole : tensor<6x75xf32>) {{
  ^bb0(%in: f32, %by: f32, %s: f32, %t: f32, %old: f32):
    %normal = arith.mulf %in, %by : f32
    %scaled = arith.mulf %normal, %s : f32
    %y = arith.addf %scaled, %t : f32
    linalg.yield %y : f32
  }} -> tensor<6x75xf32>
  return %result : tensor<6x75xf32>
}}
"""

CONVOLUTION = text_beside(__file__, "CONVOLUTION")

ROWS_OF_A_TABLE = text_beside(__file__, "ROWS_OF_A_TABLE")
