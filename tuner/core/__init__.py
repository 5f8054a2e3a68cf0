"""Values and ports that every room shares. Imports nothing of ours."""
