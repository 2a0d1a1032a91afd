"""How well melc decides beside other classifiers: ``python -m benchmarks.quality`` measures, and writes a page.

Repeated stratified folds over the paper's ten data sets, scikit-learn's own and generated ones. Every data set, model
and repeat is a line of JSON in the file of records; only those that are missing are computed. The page docs/quality.md
and its pictures are made from the records alone.
"""
