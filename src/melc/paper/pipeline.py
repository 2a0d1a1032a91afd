"""Run the whole evaluation: check the data sets, run cells without a record, write the report from the records."""

from dataclasses import dataclass
from pathlib import Path

from melc.paper import datasets, protocol, records, report, results, solve
from melc.paper.protocol import Profile
from melc.paper.verdicts import TestedClaim


@dataclass(frozen=True)
class Reproduction:
    """Result of a reproduction.

    ``html`` and ``markdown`` are the paths of the report, ``n_solved`` the number of cells run now, and ``missing`` the
    data sets that could not be loaded, with the reason.
    """

    html: Path
    markdown: Path
    n_solved: int
    missing: dict[str, str]
    verdicts: tuple[TestedClaim, ...]


def reproduce(
    output: str | Path,
    profile: str | Profile = "full",
    *,
    n_jobs: int = 1,
    show_progress: bool = True,
    report_only: bool = False,
) -> Reproduction:
    """Run the paper's evaluation and write its report.

    Parameters
    ----------
    output : path
        Folder for ``records/``, ``tables/``, ``figures/``, ``report.html`` and ``report.md``. Cells that have a record
        there are not run again, so an interrupted run can be continued.
    profile : {"full", "quick"} or Profile, default="full"
        The settings; see `melc.paper.protocol.Profile`.
    n_jobs : int, default=1
        Number of processes. Each cell runs in one process.
    show_progress : bool, default=True
        Whether to show a progress bar with the remaining time.
    report_only : bool, default=False
        If True, run nothing and write the report from existing records.

    Returns
    -------
    reproduction : Reproduction

    Examples
    --------
    A part of the evaluation, as small as can be: one data set, one of two folds, one start.

    >>> import tempfile
    >>> from melc.paper import reproduce
    >>> from melc.paper.protocol import Profile
    >>> small = {"folds": (0,), "n_folds": 2, "n_starts": 1, "max_iter": 20, "other_n_folds": (), "norm_gammas": (1.0,)}
    >>> tiny = Profile("tiny", ("heart",), gammas=(1.0,), epsilons=(0.05,), baselines=("LDA",), **small)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = reproduce(folder, tiny, show_progress=False)
    ...     done.html.name, done.missing
    ('report.html', {})
    """
    if isinstance(profile, str):
        if profile not in protocol.PROFILES:
            raise ValueError(f"profile must be one of {', '.join(map(repr, protocol.PROFILES))}; got {profile!r}")
        profile = protocol.PROFILES[profile]
    folder = Path(output)
    missing = find_missing(profile)
    cells = [cell for cell in protocol.cells(profile) if cell.data_set not in missing]
    n_solved = 0
    if not report_only:
        n_solved = solve.run_cells(cells, folder / "records", n_jobs=n_jobs, show_progress=show_progress)
    gathered = results.results_of(profile, records.read_all(cells, folder / "records"), missing)
    verdicts = report.write_files(gathered, folder, _command(profile))
    return Reproduction(folder / "report.html", folder / "report.md", n_solved, missing, tuple(verdicts))


def find_missing(profile: Profile) -> dict[str, str]:
    """Return the data sets of the profile that cannot be loaded, each with the reason and the remedy."""
    missing = {}
    for name in profile.data_sets:
        try:
            datasets.load(name)
        except datasets.DataSetError as error:
            missing[name] = str(error)
    return missing


def _command(profile: Profile) -> str:
    """Return the command that runs a profile, to be shown in the report."""
    if profile != protocol.PROFILES.get(profile.name):
        return f"melc.paper.reproduce(…, profile={profile.name!r})"
    return "melc reproduce" + (" --quick" if profile.name == "quick" else "")
