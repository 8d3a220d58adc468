"""The points at which a service can be killed, as its code names them."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SERVICES = ("agent-runner", "policy", "tools-shop", "approvals", "gateway")
# Whoever calls one of these runs the points of that module of the contracts, too.
SHARED = {"hearing": ("hear",), "handler": ("respond", "say")}


@dataclass(frozen=True)
class Point:
    """`name` without the service: `before-commit`."""

    service: str
    name: str

    def __str__(self) -> str:
        return f"{self.service}.{self.name}"


def _points() -> list[Point]:
    shared = {module: list(_stops(path)) for module, path in _modules("contracts") if list(_stops(path))}
    unknown = shared.keys() - SHARED.keys()
    assert not unknown, f"contracts.{unknown} has points, and nothing here says which services run them"
    found: dict[Point, None] = {}
    for service in SERVICES:
        modules = list(_modules(service.replace("-", "_")))
        calls = {name for _, path in modules for name in _calls(path)}
        names = [name for module, calling in SHARED.items() if calls.intersection(calling) for name in shared[module]]
        names += [name for _, path in modules for name in _stops(path)]
        found |= {Point(service, name.removeprefix(f"{service}.")): None for name in names}
    return list(found)


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    for path in sorted(Path(spec.origin).parent.rglob("*.py")):
        yield path.stem, path


def _stops(path: Path) -> Iterator[str]:
    """The names that the module hands to `stop`, where it has that from the contracts."""
    tree = ast.parse(path.read_text())
    if not any(isinstance(node, ast.ImportFrom) and node.module == "contracts.stops" for node in ast.walk(tree)):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "stop":
            [name] = node.args
            assert isinstance(name, ast.Constant), f"{path.name}, line {node.lineno}: write the point's name out"
            yield str(name.value)


def _calls(path: Path) -> Iterator[str]:
    """What the module calls by name: `hear` for `bus.hear(handler)`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


# Every point of every service, each once.
POINTS = _points()
