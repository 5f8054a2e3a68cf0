// ----- MATMUL
module {
  func.func @f(%a: memref<{of_a}>, %b: memref<{of_b}>, %c: memref<{of_c}>) {{cleared}
    linalg.matmul{maps} ins(%a, %b : memref<{of_a}>, memref<{of_b}>) outs(%c : memref<{of_c}>)
    return
  }
}
// ----- BLOCKS
module {
  func.func @f(%a: memref<{of_a}>, %b: memref<{of_b}>, %c: memref<{of_c}>) {
    %zero = arith.constant {zero} : {total}
    %c0 = arith.constant 0 : index
    %step = arith.constant {block} : index
    %end = arith.constant {n} : index
    scf.for %j = %c0 to %end step %step {
      %columns = affine.min affine_map<(j) -> ({n} - j, {block})>(%j)
      %b_part = memref.subview %b{place} {size} [1, 1] : memref<{of_b}> to {part_of_b}
      %c_part = memref.subview %c[0, %j] [{m}, %columns] [1, 1] : memref<{of_c}> to {part_of_c}
      linalg.fill ins(%zero : {total}) outs(%c_part : {part_of_c})
      linalg.matmul{maps} ins(%a, %b_part : memref<{of_a}>, {part_of_b}) outs(%c_part : {part_of_c})
    }
    return
  }
}
// ----- TURN
transform.apply_patterns to %func {
      transform.apply_patterns.vector.lower_transpose lowering_strategy = "shuffle_16x16"
      transform.apply_patterns.canonicalization
    } : !transform.any_op
