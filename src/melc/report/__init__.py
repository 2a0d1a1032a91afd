"""One HTML page about a fitted model, to send to a colleague: it works offline and has no row of the data."""

from melc.report.page import Report, report_html, show_report, write_report

__all__ = ["Report", "report_html", "show_report", "write_report"]
