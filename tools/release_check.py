"""Build wheel and sdist, install each into an empty environment, and try it: ``python tools/release_check.py``.

With ``--no-build`` the files that are in ``dist`` are tried. With ``--tag v0.1.0`` the version must be that of the
tag, and the changelog must have it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_BYTES_OF_A_WHEEL = 2_000_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-build", action="store_true", help="try what is in dist")
    parser.add_argument("--tag", help="tag of the release, such as v0.1.0")
    given = parser.parse_args(arguments)
    version = check_version(given.tag)
    if not given.no_build:
        shutil.rmtree(DIST, ignore_errors=True)
        run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    wheel, sdist = DIST / f"melc-{version}-py3-none-any.whl", DIST / f"melc-{version}.tar.gz"
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.2f} MB; {sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB")
    if size >= MOST_BYTES_OF_A_WHEEL:
        raise SystemExit(f"The wheel is larger than {MOST_BYTES_OF_A_WHEEL / 1e6:g} MB; what became so large?")
    for file in (wheel, sdist):
        try_installed(file, version)
    return 0


def check_version(tag: str | None) -> str:
    """Return the version; with a tag, stop if it is another or if the changelog does not have it."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "src" / "melc" / "_version.py").read_text(encoding="utf-8"))
    assert found is not None
    version = found[1]
    if tag is not None and tag != f"v{version}":
        raise SystemExit(f"The tag is {tag}, but src/melc/_version.py has {version}.")
    if tag is not None and f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise SystemExit(f"CHANGELOG.md has no section [{version}].")
    return version


def try_installed(file: Path, version: str) -> None:
    """Install a file into an empty environment and try it there, in a folder without the source."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = str(programs / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*install, str(file), cwd=folder)
        run(python, str(ROOT / "tools" / "smoke_test.py"), cwd=folder)
        run(*install, f"{file}[cli]", cwd=folder)
        shown = run(str(programs / "melc"), "--version", cwd=folder)
        if shown.strip() != f"melc {version}":
            raise SystemExit(f"melc --version printed {shown!r}, expected melc {version}.")


def run(*command: str, cwd: str | None = None) -> str:
    """Run a command, show and return what it prints; stop if it fails."""
    print("$", *command, flush=True)
    isolated = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=cwd, env=isolated, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise SystemExit(f"failed with exit code {done.returncode}: {' '.join(command)}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
