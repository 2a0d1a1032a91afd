"""One HTML page about a fitted model, to send to a colleague: it works offline and has no row of the data."""

from melc.report.notebook import Report, show_report
from melc.report.page import report_html, write_report

__all__ = ["Report", "report_html", "show_report", "write_report"]
