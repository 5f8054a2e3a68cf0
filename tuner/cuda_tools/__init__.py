"""NVIDIA's command-line tools, from wheels or from PATH: one file finds them, one per tool runs it."""
