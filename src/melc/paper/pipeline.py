"""From nothing to the report: check the data sets, run what is missing, draw everything from the records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from melc.paper import datasets, protocol, records, report, results, runner
from melc.paper.protocol import Profile
from melc.paper.verdicts import Verdict


@dataclass(frozen=True)
class Reproduction:
    """What came of a reproduction: the report, how many cells were solved now, and what was missing."""

    html: Path
    markdown: Path
    n_solved: int
    missing: dict[str, str]
    verdicts: tuple[Verdict, ...]


def reproduce(
    output: str | Path,
    profile: str | Profile = "full",
    *,
    n_jobs: int = 1,
    show_progress: bool = True,
    report_only: bool = False,
) -> Reproduction:
    """Run the paper's evaluation into the folder `output` and write its report there.

    Parameters
    ----------
    output : folder for ``records/``, ``tables/``, ``figures/``, ``report.html`` and ``report.md``. Cells that
        have a record there are not run again, so a run that was stopped goes on where it was.
    profile : "full", "quick", or a `melc.paper.protocol.Profile` of your own.
    n_jobs : processes; each cell runs in one.
    show_progress : a progress bar with the time left, on the terminal.
    report_only : write the report from the records that are there, run nothing.
    """
    folder = Path(output)
    chosen = _find_profile(profile)
    missing = find_missing(chosen)
    cells = [cell for cell in protocol.cells(chosen) if cell.data_set not in missing]
    n_solved = 0
    if not report_only:
        n_solved = runner.run(cells, folder / "records", n_jobs=n_jobs, show_progress=show_progress)
    gathered = results.gather(chosen, records.read_all(cells, folder / "records"), missing)
    written = report.write(gathered, folder, _command(chosen))
    return Reproduction(written.html, written.markdown, n_solved, missing, written.verdicts)


def find_missing(profile: Profile) -> dict[str, str]:
    """Data sets of the profile that cannot be had, each with the reason and the remedy."""
    missing = {}
    for name in profile.data_sets:
        try:
            datasets.load(name)
        except datasets.DataSetError as error:
            missing[name] = str(error)
    return missing


def _find_profile(profile: str | Profile) -> Profile:
    if isinstance(profile, Profile):
        return profile
    if profile not in protocol.PROFILES:
        raise ValueError(f"profile={profile!r} is none of {', '.join(map(repr, protocol.PROFILES))}")
    return protocol.PROFILES[profile]


def _command(profile: Profile) -> str:
    standard = protocol.PROFILES.get(profile.name)
    if profile != standard:
        return f"melc.paper.reproduce(…, profile={profile.name!r})"
    return "melc reproduce" + (" --quick" if profile.name == "quick" else "")
