"""Rows in Dask collections. No other package imports Dask."""
