"""Rows in Dask collections: the only room that imports Dask."""
