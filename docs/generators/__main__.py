"""``python -m docs.generators`` writes the generated parts of the reference and ``llms.txt``."""

from pathlib import Path

from docs.generators import with_generated_parts
from docs.generators.page_list import page_list

DOCS = Path(__file__).parents[1]

for page in sorted(DOCS.glob("reference/*.md")):
    page.write_text(with_generated_parts(page.read_text()))
(DOCS.parent / "llms.txt").write_text(page_list(DOCS))
