// ----- WHOLE_ROWS
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %product = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %product : !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %buffers = transform.bufferization.one_shot_bufferize %func
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
