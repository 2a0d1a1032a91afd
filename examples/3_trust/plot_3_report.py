"""
A page to send around
=====================

A picture is for those who made the model. For others there is a report: one page with the rule, the pictures, the
scores of cross-validation and the intervals, which opens in any browser without a network.
"""

from sklearn.datasets import load_iris

from melc import MELC
from melc.plotting import ProjectionDisplay
from melc.report import show_report

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)
ProjectionDisplay.from_estimator(model, X, y, title="the picture alone")

# %%
# ``write_report(model, X, y, "report.html")`` writes the page to a file, and so does ``melc report`` on the command
# line. In a notebook, and here, it is shown in place:

show_report(model, X, y, n_resamples=50, title="Which flowers are versicolor?")
