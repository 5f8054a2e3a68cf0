"""Names of what runs a PyTorch module next to tuner, and which of them a user may choose."""

from tuner.core.errors import UsageError

EAGER = "eager"
COMPILE = "torch.compile"
FREEZING, MAX_AUTOTUNE = f"{COMPILE} freezing", f"{COMPILE} max_autotune"
ONNXRUNTIME, OPENVINO = "onnxruntime", "openvino"
ALL, NONE = "all", "none"
CHOICES = {
    ALL: (EAGER, COMPILE, FREEZING, MAX_AUTOTUNE, ONNXRUNTIME, OPENVINO),
    EAGER: (EAGER,),
    COMPILE: (EAGER, COMPILE, FREEZING, MAX_AUTOTUNE),
    NONE: (),
}


def chosen_baselines(choice: str) -> tuple[str, ...]:
    """Returns the names of the baselines of a choice: "all", "eager", "torch.compile" (with eager), "none".

    Raises UsageError for another choice.
    """
    if choice not in CHOICES:
        raise UsageError(f"baseline: found {choice!r}, allowed {', '.join(CHOICES)}")
    return CHOICES[choice]
