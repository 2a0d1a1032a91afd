"""The door of the command line: ``melc``. The commands themselves are in :mod:`melc.commands`."""

import sys


def main() -> None:
    """Run ``melc``; without the libraries that it needs, say how to get them."""
    try:
        from melc.commands import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"melc: the command line needs {error.name}: pip install 'melc[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="melc")


if __name__ == "__main__":
    main()
