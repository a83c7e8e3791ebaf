"""The order of the examples: that of docs/examples.rst."""

from pathlib import Path

PAGE = (Path(__file__).parent / "examples.rst").read_text(encoding="utf-8")


def place_in_gallery(path: str) -> int:
    """Place of an example on the page."""
    return PAGE.index(Path(path).name)
