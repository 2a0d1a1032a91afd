"""
A report for colleagues
=======================

A report is one HTML page with the rule, the plots, the cross-validated scores and the intervals of a model. It opens in
any browser, without a network.
"""

from sklearn.datasets import load_iris

from melc import MELC
from melc.plotting import ProjectionDisplay
from melc.report import show_report

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)
ProjectionDisplay.from_estimator(model, X, y, title="one plot of the report")

# %%
# ``write_report(model, X, y, "report.html")`` writes the page to a file, as ``melc report`` does on the command line.
# ``show_report`` shows it in a notebook:

show_report(model, X, y, n_resamples=50, title="Which flowers are versicolor?")
