"""README.md as PyPI shows it: there, links to files lead to the repository."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "skbandit/skbandit"


def absolute_links(text: str, version: str) -> str:
    """Point relative links of Markdown to the files as they were at the tag of this version."""
    raw = f"https://raw.githubusercontent.com/{REPOSITORY}/v{version}/"
    pages = f"https://github.com/{REPOSITORY}/blob/v{version}/"
    relative = r"(\[[^\]]*\]\()(?!\w+:|#)"
    text = re.sub("!" + relative, rf"!\1{raw}", text)
    return re.sub(r"(?<!!)" + relative, rf"\1{pages}", text)


class ReadmeHook(MetadataHookInterface):
    """Fills in the long description, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict) -> None:
        """Read README.md and the version beside it."""
        root = Path(self.root)
        code = (root / "skbandit" / "__init__.py").read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "(.*)"$', code, flags=re.M)[1]
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, version),
        }
