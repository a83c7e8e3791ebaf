"""Code without a subject of its own, shared by all rooms; private."""

__all__: list[str] = []
