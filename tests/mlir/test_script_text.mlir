// ----- PASS_OPTIONS
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %iterations = transform.tune.knob<"iterations"> options = [1, 10] -> !transform.param<i64>
    %topdown = transform.tune.knob<"topdown"> options = [true, false] -> !transform.any_param
    %g = transform.apply_registered_pass "canonicalize"
      with options = { "top-down" = %topdown, "test-convergence" = false, "max-iterations" = %iterations }
      to %f : (!transform.any_op, !transform.any_param, !transform.param<i64>) -> !transform.any_op
    transform.yield
  }
}
// ----- LISTS
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %a = transform.param.constant 1 : i64 -> !transform.param<i64>
    %b = transform.param.constant true -> !transform.any_param
    %c = transform.param.constant 2 : i32 -> !transform.param<i32>
    %g = transform.apply_registered_pass "convert-vector-to-scf"
      with options = { "target-rank" = %a, "lower-scalable" = [%b, true], "full-unroll" = [%c, false] }
      to %f : (!transform.any_op, !transform.param<i64>, !transform.any_param, !transform.param<i32>) -> !transform.any_op
    transform.yield
  }
}
