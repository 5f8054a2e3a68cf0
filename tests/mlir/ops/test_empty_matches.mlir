// ----- SCRIPT
module attributes {transform.with_named_sequence} {
transform.named_sequence @__transform_main(%root: {any} {transform.readonly}) {
{ops}
transform.yield
}
}
