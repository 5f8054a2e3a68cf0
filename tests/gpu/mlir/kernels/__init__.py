"""Small GPU dialect programs, and what they compute."""
