"""What the fuzz programs draw, and how it is judged; tests draw the same."""
