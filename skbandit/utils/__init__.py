"""Private code without a subject of its own, shared by all packages."""

import time

__all__: list[str] = []

IMPORTED = time.time()
"""When the package was imported, in seconds since the epoch: its files may be replaced later."""
