"""Where the schedule of a group of operations comes from, as results and reports name it."""

TUNED, SAME_CONTRACTION, NEAREST, FIRST, LOOPS = ORIGINS = (
    "tuned",  # the best trial of this group
    "same contraction",  # that of a contraction of the same sizes with another epilogue
    "nearest",  # that of the group of the same kind whose sizes are nearest
    "first",  # the first configuration of the search space
    "loops",  # no schedule: scalar loops
)
