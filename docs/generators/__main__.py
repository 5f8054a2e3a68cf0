"""``python -m docs.generators`` writes parts of the reference, ``llms.txt`` and ``search_space.yaml``."""

from pathlib import Path

from docs.generators import with_generated_parts
from docs.generators.page_list import page_list
from docs.generators.search_space import search_space

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
SPACE = ROOT / "search_space.yaml"

for page in sorted(DOCS.glob("reference/*.md")):
    page.write_text(with_generated_parts(page.read_text()))
(ROOT / "llms.txt").write_text(page_list(DOCS))
SPACE.write_text(search_space(SPACE.read_text(), ROOT / "strategies"))
