"""Messages of the library in the words of the command line: options instead of parameters."""

import re

from melc.model.names import QUOTED

_OPTIONS = {
    'shrinkage="auto"': "--shrinkage auto",
    'priors="empirical"': "--priors empirical",
    'gamma="auto"': "--gamma auto",
    'selection="divergence"': "--selection divergence",
    'selection="likelihood"': "--selection likelihood",
    "max_lines": "--lines",
    "max_iter": "--max-iter",
    "max_rows": "--max-rows",
    "n_resamples": "--resamples",
    "n_init": "--n-init",
    "tol": "--tol",
    "gamma": "--gamma",
    "priors": "--priors",
    "shrinkage": "--shrinkage",
    "sample_weight": "--weights",
    "random_state": "--seed",
    "class_label": "--class",
    "odds=True (--odds on the command line)": "--odds",
}
_WORDS = "|".join(re.escape(word) for word in sorted(_OPTIONS, key=len, reverse=True))
_LISTS = r"(?<![\w-])priors=\[(?P<priors>[^\]]*)\]"
_PATTERN = re.compile(rf"{QUOTED}|{_LISTS}|(?<![\w-])(?:{_WORDS})(?!\w)")


def in_options(message: str) -> str:
    """Return a message with the parameters of the models replaced by options.

    Examples
    --------
    >>> in_options("Class 'tol' hardly varies. Raise max_iter (now 200) or tol (now 1e-05).")
    "Class 'tol' hardly varies. Raise --max-iter (now 200) or --tol (now 1e-05)."
    """
    return _PATTERN.sub(_in_options, message)


def _in_options(found: re.Match[str]) -> str:
    """Return the option for a parameter; names of columns and other quoted values stay as they are."""
    if found["priors"] is not None:
        return f"--priors {found['priors'].replace(' ', '')}"
    return _OPTIONS.get(found[0], found[0])
