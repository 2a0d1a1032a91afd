"""Try an installed melc without its extras: ``python tools/smoke_test.py``."""

import numpy as np

import melc
from melc import MELC, AdditiveMELC
from melc.export import export_text, from_json, to_json, to_sql

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
y = np.where(np.abs(X @ [1.0, 0.5, 0.0]) < 0.8, "inside", "outside")

for model in (MELC(random_state=0), AdditiveMELC(random_state=0)):
    assert model.fit(X, y).score(X, y) > 0.9
    assert np.array_equal(from_json(to_json(model)).predict(X), model.predict(X))
    assert "inside" in export_text(model)
    assert to_sql(model).startswith("SELECT")
assert MELC(random_state=0).fit(X, y).interval_classes_.tolist() == ["outside", "inside", "outside"]
print(f"melc {melc.__version__} works, installed in {melc.__path__[0]}")
