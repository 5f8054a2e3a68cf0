from tuner.space.scripts.requirements import custom_ops


def test_custom_ops_are_found_in_code_and_not_in_comments() -> None:
    script = '// "tuner.a"(%x)\n"tuner.prefetch"(%x) : (!a) -> ()\n %y = "tuner.dot"(%x)\n"transform.b"(%x)\n'
    assert custom_ops(script) == ("tuner.dot", "tuner.prefetch")
    assert custom_ops("module attributes {transform.with_named_sequence} {\n}\n") == ()
