// ----- TILE
module {
  func.func @f(%input: {x}, %weights: {w}, %sums: {sums}) {
    %zero = arith.constant 0.0 : f32
    {filled_sums}
    linalg.generic {
      indexing_maps = [affine_map<(n, f, h, p, a, b, c) -> (n, c, h + a, {column})>,
                       affine_map<(n, f, h, p, a, b, c) -> (a, b, f, c)>,
                       affine_map<(n, f, h, p, a, b, c) -> (n, f, h, p)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel",
                        "reduction", "reduction", "reduction"]
    } ins(%input, %weights : {x}, {w}) outs(%sums : {sums}) attrs = {contraction} {
      ^bb0(%one: {element}, %other: {element}, %before: f32):
        linalg.yield %before : f32
    }
    return
  }
}
