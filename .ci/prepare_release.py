"""Set the version and the date of a release, and gather the fragments of changes/.

python .ci/prepare_release.py 0.2.0 2027-03-01
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PLACES = {
    "skbandit/__init__.py": {r'^__version__ = ".*"$': '__version__ = "{version}"'},
    "CITATION.cff": {
        r"^version: .*$(\ndate-released: .*$)?": "version: {version}\ndate-released: {date}",
    },
}
"""Lines, by file, that tell the version or the date; the first is the one that all else reads."""

FIRST = {r"^## \S+ \(unreleased\)$": "## {version} ({date})"}
"""The heading of CHANGELOG.md before the first release, whose section has no fragments."""


def dated(text: str, lines: dict[str, str], version: str, date: str) -> str:
    """Rewrite each of the lines, which must be there exactly once."""
    for pattern, line in lines.items():
        text, found = re.subn(pattern, line.format(version=version, date=date), text, flags=re.M)
        if found != 1:
            raise SystemExit(f"expected one line {pattern!r}, found {found}")
    return text


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    version, date = sys.argv[1:]
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise SystemExit(f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise SystemExit(f"{date!r} is not a date such as 2027-03-01")
    for name, lines in PLACES.items():
        path = ROOT / name
        path.write_text(dated(path.read_text(encoding="utf-8"), lines, version, date), "utf-8")
    changelog = ROOT / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if "(unreleased)\n" in text:
        changelog.write_text(dated(text, FIRST, version, date), "utf-8")
    else:
        command = ["towncrier", "build", "--yes", "--version", version, "--date", date]
        subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
