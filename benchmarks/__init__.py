"""Ratios measured side by side in one run: ``python -m benchmarks`` prints them as a table and keeps them as JSON.

A benchmark is a function of a :class:`~benchmarks.measure.Profile` that gives rows, registered by name. The two sides
of every ratio take turns and the best of several rounds counts, so that what else the machine does cancels.
"""
