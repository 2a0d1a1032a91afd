"""Export of a fitted model as text, JSON, SQL or ONNX."""

from melc.export.document import from_json, to_json
from melc.export.onnx_graph import to_onnx
from melc.export.sql import to_sql
from melc.export.text import export_text

__all__ = ["export_text", "from_json", "to_json", "to_onnx", "to_sql"]
