"""``python -m docs.generators`` writes the generated parts of the reference into its pages."""

from pathlib import Path

from docs.generators import with_generated_parts

for page in sorted(Path(__file__).parents[1].glob("reference/*.md")):
    page.write_text(with_generated_parts(page.read_text()))
