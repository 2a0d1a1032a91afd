"""Labelled rows in memory or in Dask collections, and the passes over them."""
