"""Pictures of rules of few features: the index card, and how many features are worth their place."""

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict, validation_curve
from sklearn.pipeline import Pipeline

from melc.arrays import Floats
from melc.data.frames import Label
from melc.export.text_parts import quoted_level
from melc.model.index_card import IndexCard, index_card_of
from melc.model.names import feature_names_of
from melc.model.units import fitted_model, weights_of_fit, without_search
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, GREY, class_style

# Size of a card in inches, and its margin. Points per inch.
_WIDTH, _HEIGHT, _MARGIN, _POINTS = 5.0, 3.0, 0.16, 72.0
# Sizes of letters that are tried until the text fits, in points; the height of a row and the mean width of a letter
# in units of it.
_LETTERS, _ROW, _LETTER = (11, 10.5, 10, 9.5, 9, 8.5, 8, 7.5, 7, 6.5, 6, 5.5, 5), 1.38, 0.56
# No letters are smaller than this, in points.
_LEAST_SIZE = 2.0
# The space for a number, in inches, and the part of a row that is left for the text beside it.
_BLANK, _TEXT_SHARE = 0.6, 0.84
# Most characters of the name of a level, and of a feature.
_LONGEST_LEVEL, _LONGEST_NAME = 30, 90


@dataclass(frozen=True)
class HeldOutShares:
    """How often a rule is right on rows that it was not fitted to: for each class the share of its rows."""

    labels: list[str]
    shares: list[float]
    n_folds: int

    @property
    def sentence(self) -> str:
        parts = ", ".join(
            f"{100 * share:.0f} % of {label}" for label, share in zip(self.labels, self.shares, strict=True)
        )
        mean = 100 * float(np.mean(self.shares))
        return f"On rows not seen in the fit ({self.n_folds} folds): right for {parts}; on average {mean:.0f} %."


@dataclass(eq=False)
class CardDisplay:
    """The rule of a model as an index card of 5 × 3 inches, to print and to use with pencil and paper.

    The model must be a :class:`melc.MELC` of two classes with ``whole_weights``, preferably with ``max_features``. The
    card shows the score as a sum, the points of levels of categories, and the class of every interval of scores, with
    the number of training rows of this class. If the text needs more room, the card becomes taller. Create it with
    :meth:`from_estimator`.

    Parameters
    ----------
    card : melc.model.index_card.IndexCard
        The texts on the card.
    title : str
        The heading.
    held_out : HeldOutShares or None, default=None
        How often the rule is right on rows that it was not fitted to.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the card.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    texts_ : list of matplotlib Text
        The rows of text.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from melc import MELC
    >>> from melc.plotting import CardDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = MELC(max_features=3, whole_weights=5, random_state=0).fit(X, y)
    >>> len(CardDisplay.from_estimator(model).card.terms)
    3
    """

    card: IndexCard
    title: str
    held_out: HeldOutShares | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        cv: Any = 5,
        held_out: HeldOutShares | None = None,
        feature_names: Any = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "CardDisplay":
        """Draw the card of a fitted model.

        Parameters
        ----------
        estimator : MELC, Pipeline or fitted search
            A fitted model of two classes with ``whole_weights``.
        X, y : array-like, default=None
            Training rows and their labels. If given, the card shows how often the rule is right in cross-validation.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of these rows, in the fits of the cross-validation and in the shares that are right.
        cv : int or cross-validation splitter, default=5
            A splitter, or the number of folds, which are then shuffled and stratified.
        held_out : HeldOutShares, default=None
            Instead of X and y: the result of ``melc.plotting.card.held_out_shares`` for them.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        title : str, default=None
            The heading. By default the two classes.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure of the size of the card is created.

        Returns
        -------
        display : CardDisplay
        """
        model = fitted_model(estimator)
        names = common.shortened(feature_names_of(model, feature_names), _LONGEST_NAME)
        labels = common.class_names(model)
        short = dict(zip(map(str, model.classes_), labels, strict=True))
        card = index_card_of(model, names, short.__getitem__, _short_level)
        if X is not None and y is not None:
            held_out = held_out_shares(estimator, X, y, cv, sample_weight)
        display = cls(card, f"{labels[0]} or {labels[1]}?" if title is None else title, held_out)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "CardDisplay":
        """Draw on ``ax``, or on a new figure if it is None, and return the display."""
        size, rows, height = self._layout()
        if ax is None:
            figure = common.pyplot().figure(figsize=(_WIDTH, height))
            figure.set_layout_engine("none")  # the card is all of the figure
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0, _WIDTH), ylim=(height, 0), xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_color(GREY)
        self.texts_: list[Any] = []
        top = _MARGIN
        for row in rows:
            self._draw_row(row, top, size)
            top += row.height * size / _POINTS
        return self

    def _layout(self) -> tuple[float, "list[_Row]", float]:
        """Return the largest size of letters with which the text fits, the rows, and the height of the card."""
        for size in _LETTERS:
            rows = self._rows(int((_WIDTH - 2 * _MARGIN) * _POINTS / (_LETTER * size)))
            height = 2 * _MARGIN + sum(row.height for row in rows) * size / _POINTS
            if height <= _HEIGHT:
                break
        return size, rows, max(height, _HEIGHT)

    def _rows(self, width: int) -> "list[_Row]":
        """Return the rows of text for so many characters in a row: a form with a space to write on for each term."""
        rows = [_Row(line, bold=True, height=1.3 * _ROW) for line in textwrap.wrap(self.title, width)]
        for term in self.card.terms:
            text = f"{term.value}:  {';  '.join(term.points_by_level)}" if term.points else term.name
            rows += _wrapped(text, int(_TEXT_SHARE * width), blank=True)
            for note in term.notes:
                rows += _wrapped(f"    {note}", width, colour=GREY)
        rows += [_Row("score (the sum)", bold=True, blank=True), _Row("", height=0.4 * _ROW)]
        rows.append(_Row("score", colour=GREY, label="class   (right, of the rows in the fit)"))
        for each in self.card.intervals:
            rows.append(_Row(each.name, code=each.code, label=f"{each.label}   {each.counts}"))
        if self.held_out is not None:
            rows += [_Row("", height=0.4 * _ROW), *_wrapped(self.held_out.sentence, width, colour=GREY)]
        return rows

    def _draw_row(self, row: "_Row", top: float, size: float) -> None:
        options = {"fontsize": size, "va": "top", "color": row.colour, **AS_WRITTEN}
        place, end, letter = _MARGIN, _WIDTH - _MARGIN, size / _POINTS
        if row.code is not None:  # a bar in the colour of the class
            patch = {**class_style(row.code).area, "linewidth": 0}
            self.ax_.add_patch(common.pyplot().Rectangle((place, top), 0.2, letter, **patch))
        if row.label:  # beside the bars, the interval and then the class
            place += 0.3
            self._write(row.label, place + 0.3 * _WIDTH, end, top, options)
            end = place + 0.29 * _WIDTH
        if row.blank:
            self.ax_.plot([end - _BLANK, end], [top + 1.1 * letter] * 2, color=GREY, linewidth=0.8)
            end -= _BLANK
        self._write(row.text, place, end, top, {**options, "weight": "bold" if row.bold else "normal"})

    def _write(self, words: str, start: float, end: float, top: float, options: dict[str, Any]) -> None:
        """Write words between two places, with smaller letters if they are so wide that they would not fit."""
        text = self.ax_.text(start, top, common.on_one_line(words), **options)
        to_inches = self.ax_.transData.inverted()
        while text.get_window_extent().transformed(to_inches).width > end - start and text.get_fontsize() > _LEAST_SIZE:
            text.set_fontsize(0.95 * text.get_fontsize())
        self.texts_.append(text)


@dataclass(frozen=True)
class _Row:
    text: str
    bold: bool = False
    colour: str = BLACK
    height: float = _ROW
    code: int | None = None
    label: str = ""
    blank: bool = False  # whether there is a space to write a number on


def _wrapped(text: str, width: int, blank: bool = False, colour: str = BLACK) -> list[_Row]:
    """Return a text as rows of at most so many characters, with a space to write on in the last, if asked for."""
    lines = textwrap.wrap(text, width, subsequent_indent="    ")
    return [_Row(line, colour=colour, blank=blank and k == len(lines) - 1) for k, line in enumerate(lines)]


def _short_level(level: Label | None) -> str:
    return common.bounded(quoted_level(level), _LONGEST_LEVEL)


def held_out_shares(estimator: Any, X: Any, y: Any, cv: Any = 5, sample_weight: Any = None) -> HeldOutShares:
    """Return for each class the share of its rows, by weight, that is predicted right when they are not in the fit."""
    estimator = without_search(estimator)
    y, folds = np.asarray(y), _folds(cv)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    passed = {} if sample_weight is None else weights_of_fit(estimator, weights)
    right = cross_val_predict(clone(estimator), X, y, cv=folds, params=passed) == y
    shares = [float(np.average(right[y == label], weights=weights[y == label])) for label in estimator.classes_]
    return HeldOutShares([str(label) for label in estimator.classes_], shares, folds.get_n_splits(X, y))


def _folds(cv: Any) -> Any:
    """Return folds: of a number of them shuffled ones, because tables are often sorted."""
    return StratifiedKFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv


@dataclass(eq=False)
class FeaturePathDisplay:
    """Plot of the cross-validated score against the number of features.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    scores : ndarray of shape (n_numbers, n_folds)
        Score of each fold with at most 1, 2, 3, … features.
    all_scores : ndarray of shape (n_folds,)
        Scores with all features.
    scoring : str, default="balanced accuracy"
        What the scores are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from melc import MELC
    >>> from melc.plotting import FeaturePathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> display = FeaturePathDisplay.from_estimator(MELC(random_state=0), X, y, max_features=2, cv=2)
    >>> display.scores.shape
    (2, 2)
    """

    scores: Floats
    all_scores: Floats
    scoring: str = "balanced accuracy"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        max_features: int = 8,
        cv: Any = 5,
        scoring: str = "balanced_accuracy",
        n_jobs: int | None = None,
        ax: Any = None,
    ) -> "FeaturePathDisplay":
        """Cross-validate with 1, 2, 3, … features and with all of them, and draw the scores.

        Parameters
        ----------
        estimator : MELC or Pipeline
            A model, fitted or not, or a pipeline that ends in one.
        X, y : array-like
            Rows and their labels.
        max_features : int, default=8
            Largest number of features to try, at most all of them.
        cv : int or cross-validation splitter, default=5
            A splitter, or the number of folds, which are then shuffled and stratified.
        scoring : str, default="balanced_accuracy"
            A scorer of scikit-learn, for which larger values are better.
        n_jobs : int, default=None
            Number of processes.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        display : FeaturePathDisplay
        """
        numbers = [*range(1, min(max_features, np.shape(X)[1]) + 1), None]
        name = f"{estimator.steps[-1][0]}__max_features" if isinstance(estimator, Pipeline) else "max_features"
        options = {"param_name": name, "param_range": numbers, "cv": _folds(cv), "scoring": scoring, "n_jobs": n_jobs}
        _, scores = validation_curve(clone(estimator), X, y, error_score="raise", **options)
        return cls(scores[:-1], scores[-1], scoring.replace("_", " ")).plot(ax)

    def plot(self, ax: Any = None) -> "FeaturePathDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        numbers, means = np.arange(1, len(self.scores) + 1), self.scores.mean(axis=1)
        errors = self.scores.std(axis=1) / np.sqrt(self.scores.shape[1])
        self.ax_.errorbar(
            numbers, means, errors, color=BLUE, marker="o", capsize=3, label="mean of the folds and its standard error"
        )
        whole = float(self.all_scores.mean())
        self.ax_.axhline(whole, color=GREY, linestyle="--", label=f"all features: {whole:.3f}")
        self.ax_.set(xlabel="largest number of features", ylabel=f"held-out {self.scoring}")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(frameon=False, fontsize=8, loc="lower right")
        return self
