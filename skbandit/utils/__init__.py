"""Private code without a subject of its own, shared by all packages."""

__all__: list[str] = []
