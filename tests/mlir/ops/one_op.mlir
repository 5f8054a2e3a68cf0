// ----- SCRIPT
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %func = transform.structured.match ops{["func.func"]} attributes{sym_name = "f"} in %root
      : (!transform.any_op) -> !transform.any_op
    {line}
    transform.yield
  }
}
