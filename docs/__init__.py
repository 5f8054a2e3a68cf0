"""The pages, and what generates the reference."""
