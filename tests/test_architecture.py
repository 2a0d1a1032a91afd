"""The source tree is as CONTRIBUTING.md describes it: a complete table, downward imports, files of modest size.

Each check is a function that returns what is wrong, so that it can be tried on a small made-up tree as well.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "melc"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"

MOST_ENTRIES = 20
MOST_LINES = 450
NOT_COUNTED = {"__init__.py", "_version.py", "py.typed", "__pycache__"}

HEADER = "| Room | Module | What it does |"
TABLE_ROW = re.compile(r"\| *(?P<room>[^|]*?) *\| *`(?P<module>[^`|]+\.py)` *\|[^|]*\|")


class Import(NamedTuple):
    """An import of one module of the package by another, both as paths relative to the package."""

    importer: str
    line: int
    imported: str
    for_types: bool  # under ``if TYPE_CHECKING:``


def rooms_in(text):
    """Return the room of every module in the table, in the order of the table: {"cli/commands.py": "`cli/`", ...}."""
    lines = text[text.index(HEADER) :].splitlines()[2:]
    rooms, room = {}, ""
    for line in lines:
        if not line.startswith("|"):
            break
        row = TABLE_ROW.fullmatch(line)
        assert row is not None, f"not a row of the table of modules: {line}"
        assert row["module"] not in rooms, f"{row['module']} is in the table twice"
        room = row["room"] or room
        rooms[row["module"]] = room
    return rooms


def modules_of(package):
    """Return the syntax tree of every module, by its path relative to the package."""
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def differences_from_table(package, rooms):
    """Return the modules that are missing in the table, and those in the table that do not exist."""
    modules = modules_of(package)
    listed = {path for path, tree in modules.items() if not _is_docstring_of_package(path, tree)}
    missing = [f"{path} is not in the table of CONTRIBUTING.md" for path in sorted(listed - set(rooms))]
    return missing + [f"{path} is in the table, but does not exist" for path in rooms if path not in modules]


def _is_docstring_of_package(path, tree):
    is_docstring = len(tree.body) == 1 and ast.get_docstring(tree) is not None
    return path.endswith("__init__.py") and (is_docstring or not tree.body)


def imports_in(package):
    """Return all imports within the package, also those inside functions."""
    modules = modules_of(package)
    return [each for path, tree in modules.items() for each in _imports_of(path, tree, package.name, modules)]


def _imports_of(path, tree, package, modules):
    type_checking = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _tests_type_checking(node)]
    for_types = {id(inner) for node in type_checking for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for imported in _imported_by(node, path, package, modules):
                yield Import(path, node.lineno, imported, id(node) in for_types)


def _tests_type_checking(node):
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _imported_by(node, path, package, modules):
    """Yield the paths of the modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        names = [(alias.name, None) for alias in node.names]
    else:
        within = [package, *Path(path).parent.parts]
        base = within[: len(within) - node.level + 1] if node.level else []
        names = [(".".join([*base, *filter(None, [node.module])]), alias.name) for alias in node.names]
    for module, name in names:
        found = _path_of(f"{module}.{name}", package, modules) or _path_of(module, package, modules)
        if found is not None:
            yield found


def _path_of(name, package, modules):
    """Return the path of a module by its dotted name; None if it is no module of the package."""
    first, *rest = name.split(".")
    if first != package:
        return None
    candidates = "/".join([*rest, "__init__.py"]), "/".join(rest) + ".py"
    return next((path for path in candidates if path in modules), None)


def upward_imports(package, rooms):
    """Return the imports from a room above, each with file, line and both rooms."""
    order = list(dict.fromkeys(rooms.values()))
    return [
        f"src/{package.name}/{each.importer}:{each.line} imports {each.imported}, "
        f"but {rooms[each.imported]} is above {rooms[each.importer]}"
        for each in imports_in(package)
        if each.importer in rooms and each.imported in rooms
        if order.index(rooms[each.imported]) < order.index(rooms[each.importer])
    ]


def circular_imports(package):
    """Return the modules of a circle of imports, if there is one. Imports for type checkers do not count."""
    graph = {}
    for each in imports_in(package):
        if not each.for_types:
            graph.setdefault(each.importer, set()).add(each.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def top_level_entries(package):
    """Return the files and folders at the top level of the package, except for a few that every package has."""
    return sorted(path.name for path in package.iterdir() if path.name not in NOT_COUNTED)


def long_files(package, most=MOST_LINES):
    """Return the modules with more lines than allowed."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(package.rglob("*.py"))}
    return [f"{path.relative_to(package)} has {n} lines" for path, n in lengths.items() if n > most]


# ----------------------------------------------------------------------------------------------- the tree as it is


@pytest.fixture(scope="module")
def rooms():
    return rooms_in(CONTRIBUTING.read_text(encoding="utf-8"))


def test_the_table_names_every_module_and_no_other(rooms):
    assert len(rooms) > 50
    assert differences_from_table(PACKAGE, rooms) == []


def test_the_rooms_of_the_table_are_the_folders(rooms):
    wrong = [path for path, room in rooms.items() if "/" in path and room != f"`{Path(path).parent.as_posix()}/`"]
    assert wrong == []


def test_the_diagram_shows_every_room(rooms):
    diagram = (ROOT / "docs" / "images" / "rooms.svg").read_text(encoding="utf-8")
    shown = set(re.findall(r'font-weight="bold">([^<]+)<', diagram))
    assert shown == {room.strip("`") for room in rooms.values()}


def test_imports_point_downward(rooms):
    assert len(imports_in(PACKAGE)) > 200
    assert upward_imports(PACKAGE, rooms) == []


def test_no_modules_import_each_other_in_a_circle():
    assert circular_imports(PACKAGE) == []


def test_the_top_level_is_small():
    assert len(top_level_entries(PACKAGE)) <= MOST_ENTRIES, top_level_entries(PACKAGE)


def test_no_file_is_long():
    assert long_files(PACKAGE) == []


# ---------------------------------------------------------------------------------- each check can fail: a made-up tree

TABLE = f"""Some text.

{HEADER}
|---|---|---|
| `upper/` | `upper/__init__.py` | public names |
| | `upper/app.py` | uses the rest |
| `lower/` | `lower/tools.py` | is used |
| | `lower/types.py` | is used |
| ground | `ground.py` | is used by all |

| Another table | `with/a.py` | row |
"""

FILES = {
    "__init__.py": '"""A package."""\n',
    "ground.py": "NUMBER = 1\n",
    "lower/__init__.py": '"""Only a docstring."""\n',
    "lower/tools.py": "from melc.lower.types import Kind\nfrom melc.ground import NUMBER\n",
    "lower/types.py": "import math\n\nKind = int\n",
    "upper/__init__.py": "from melc.upper.app import run\n",
    "upper/app.py": "from melc import ground\n\n\ndef run():\n    from melc.lower import tools\n",
}


@pytest.fixture
def package(tmp_path):
    package = tmp_path / "melc"
    for path, text in FILES.items():
        write(package, path, text)
    return package


def write(package, path, text):
    (package / path).parent.mkdir(parents=True, exist_ok=True)
    (package / path).write_text(text, encoding="utf-8")


def test_the_made_up_tree_passes_all_checks(package):
    rooms = rooms_in(TABLE)
    assert list(rooms.values()) == ["`upper/`"] * 2 + ["`lower/`"] * 2 + ["ground"]
    assert differences_from_table(package, rooms) == []
    assert upward_imports(package, rooms) == []
    assert circular_imports(package) == []
    assert top_level_entries(package) == ["ground.py", "lower", "upper"]
    assert long_files(package) == []


def test_all_imports_are_found(package):
    found = {(each.importer, each.imported) for each in imports_in(package)}
    assert found == {
        ("lower/tools.py", "lower/types.py"),
        ("lower/tools.py", "ground.py"),
        ("upper/__init__.py", "upper/app.py"),
        ("upper/app.py", "ground.py"),
        ("upper/app.py", "lower/tools.py"),
    }


@pytest.mark.parametrize(
    "statement",
    [
        "import melc.upper.app",
        "from melc.upper.app import run",
        "from melc.upper import app",
        "from melc import upper",
        "from ..upper import app",
        "from ..upper.app import run",
        "from .. import upper",
        "def later():\n    from melc.upper import app",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from melc.upper import app",
    ],
)
def test_an_upward_import_is_found(package, statement):
    write(package, "lower/types.py", statement + "\n")
    (found,) = upward_imports(package, rooms_in(TABLE))
    line = statement.count("\n") + 1
    assert found.startswith(f"src/melc/lower/types.py:{line} imports upper/")
    assert found.endswith("but `upper/` is above `lower/`")


def test_a_circle_is_found_but_not_among_imports_for_types(package):
    write(package, "lower/types.py", "from melc.lower import tools\n")
    assert set(circular_imports(package)) == {"lower/tools.py", "lower/types.py"}
    guarded = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from melc.lower import tools\n"
    write(package, "lower/types.py", guarded)
    assert circular_imports(package) == []


def test_a_module_that_is_not_in_the_table_is_found(package):
    write(package, "lower/new.py", "x = 1\n")
    write(package, "lower/__init__.py", "x = 1\n")
    missing = [f"lower/{name}.py is not in the table of CONTRIBUTING.md" for name in ("__init__", "new")]
    assert differences_from_table(package, rooms_in(TABLE)) == missing


def test_a_module_that_does_not_exist_is_found(package):
    (package / "lower" / "types.py").unlink()
    wrong = ["lower/types.py is in the table, but does not exist"]
    assert differences_from_table(package, rooms_in(TABLE)) == wrong


@pytest.mark.parametrize(
    ("row", "message"),
    [("| | ground.py | no backticks |", "not a row"), ("| | `ground.py` | again |", "twice")],
)
def test_a_malformed_table_is_refused(row, message):
    with pytest.raises(AssertionError, match=message):
        rooms_in(TABLE.replace("| is used by all |", f"| is used by all |\n{row}"))


def test_entries_are_counted(package):
    for name in ("py.typed", "_version.py", "more.py"):
        write(package, name, "")
    assert top_level_entries(package) == ["ground.py", "lower", "more.py", "upper"]


def test_a_long_file_is_found(package):
    write(package, "lower/types.py", "\n" * MOST_LINES)
    assert long_files(package) == []
    write(package, "lower/types.py", "\n" * (MOST_LINES + 1))
    assert long_files(package) == [f"lower/types.py has {MOST_LINES + 1} lines"]
