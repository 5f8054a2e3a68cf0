// ----- ROWS
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @rows(%ids: tensor<3xi64>, %table: tensor<9x4xf32>) -> tensor<3x4xf32> {
  %empty = tensor.empty() : tensor<3x4xf32>
  %rows = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<3xi64>) outs(%empty : tensor<3x4xf32>) {
  ^bb0(%id: i64, %old: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<9x4xf32>
    linalg.yield %element : f32
  } -> tensor<3x4xf32>
  return %rows : tensor<3x4xf32>
}
// ----- PRODUCT
func.func @product(%x: tensor<?x64xf32>) -> tensor<?x128xf32> {
  %w = arith.constant dense<"0xWEIGHT"> : tensor<64x128xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %to = tensor.empty(%n) : tensor<?x128xf32>
  %cleared = linalg.fill ins(%zero : f32) outs(%to : tensor<?x128xf32>) -> tensor<?x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>)
                     outs(%cleared : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}
// ----- USE
#include "rows.h"
#include <stdio.h>

int main(void) {
  struct rows_object *object;
  int64_t ids[3] = {1, 1, 1};
  float table[36], result[12];
  for (int i = 0; i < 36; i++) table[i] = i;
  int code = rows_create(&object);
  if (code) {
    printf("%d\n", code);
    return 1;
  }
  code = rows_run(object, ids, table, result);
  printf("%d: %g %g %g %g\n", code, result[0], result[1], result[2], result[3]);
  rows_destroy(object);
  return 0;
}
