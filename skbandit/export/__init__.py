"""Fitted rules as ONNX graphs, for programs that have neither Python nor this library."""

from skbandit.export._onnx import check, to_onnx

__all__ = ["check", "to_onnx"]
