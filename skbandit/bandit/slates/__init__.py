"""Slates: m arms at a time, chosen and learned by the models of a policy for single arms."""

__all__: list[str] = []
