"""Number of examples of property tests whose examples take more than some milliseconds each."""

import hypothesis


def costly(same: int, random: int) -> hypothesis.settings:
    """Returns settings for ``same`` examples in the default profile, for ``random`` in the nightly one.

    The default profile draws the same examples in each run: further examples take time and find nothing new.
    """
    is_derandomized = hypothesis.settings().derandomize
    return hypothesis.settings(max_examples=same if is_derandomized else random)
