"""scikit-learn's own checks, in every configuration that behaves differently."""

import warnings

import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from melc import MELC, AdditiveMELC

pytestmark = pytest.mark.slow

ESTIMATORS = [
    MELC(random_state=0),
    MELC(method="bin", eps=1e-3, solver="cg", gamma=0.5, n_init=1, random_state=0),
    MELC(priors="empirical", warm_start=True, selection="divergence", tol=1e-8, n_init=2, random_state=0),
    AdditiveMELC(random_state=0),
    AdditiveMELC(full_lines="first", priors="empirical", gamma=2.0, n_jobs=2, random_state=0),
]

# Fewer would mean that a tag made the suite leave out what it should run: a skipped suite looks green.
# MELC is a transformer as well, which has checks of its own.
# Both take NaN, so that the check which expects an error for it is left out.
CHECKS = {(MELC, "1.6"): 67, (MELC, "1.9"): 68, (AdditiveMELC, "1.9"): 62}
FEWEST_CHECKS = 50  # in versions whose number is not known here


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # Some checks train on a handful of rows with tens of features, where these warnings are right.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*A class does not vary", category=UserWarning)
        warnings.filterwarnings("ignore", message="All rows of class", category=UserWarning)
        check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_the_whole_suite_runs(estimator):
    n_checks = len(list(estimator_checks_generator(estimator)))
    kind = type(estimator), ".".join(sklearn.__version__.split(".")[:2])
    if kind in CHECKS:
        assert n_checks == CHECKS[kind]
    assert n_checks >= FEWEST_CHECKS
