"""The command line ``melc``. The commands are in :mod:`melc.cli.commands`."""

import sys


def main() -> None:
    """Run ``melc``. If typer or rich is not installed, exit with the pip command that installs them."""
    try:
        from melc.cli.commands import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"melc: the command line needs {error.name}: pip install 'melc[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="melc")
