"""
Reading a rule
==============

A fitted ``MELC`` consists of a weight for each feature and a list of intervals. ``export_text`` prints them. This is
the whole model: you can classify a flower with a pocket calculator.
"""

from sklearn.datasets import load_iris

from melc import MELC
from melc.export import export_text
from melc.plotting import WeightsDisplay

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)
print(export_text(model, digits=3))

# %%
# To classify a flower by hand, compute the weighted sum z and find its interval.

flower = X.iloc[60]
z = float(flower.to_numpy() @ model.coef_[0])
interval = sum(z >= threshold for threshold in model.thresholds_)
print(f"z = {z:.2f} is in interval {interval}: {model.interval_classes_[interval]}")
print("predict says:", model.predict(X.iloc[[60]])[0])

# %%
# Weights of features in different units cannot be compared. ``WeightsDisplay`` therefore shows the contributions:
# weight times standard deviation. Here the width of the petals contributes most.

WeightsDisplay.from_estimator(model, title="contributions of the features")
