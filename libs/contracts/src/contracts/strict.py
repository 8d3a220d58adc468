"""JSON and YAML from outside, read strictly: what two readers could take differently is refused, not guessed at."""

import json
from collections import Counter
from collections.abc import Hashable
from typing import Any

import yaml

AMBIGUOUS = "Ambiguous request"  # what a request is called that is refused for it
_SHOWN = 80  # characters of a key in an error


class Ambiguous(ValueError):
    """A document that readers take differently: a key stands twice in one object, or a number is none."""


def parse_json(text: str | bytes) -> Any:
    """The value. Raises Ambiguous, and another ValueError for what is no JSON or is nested too deep to be read."""
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_yaml(text: str) -> Any:
    """The value of one document, of plain types only. Raises yaml.YAMLError, with the line, also for repeated keys."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object of its pairs. Raises Ambiguous for a key that stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise Ambiguous(f"the key {twice[:_SHOWN]!a} stands twice in one object")
    return found


def _constant(name: str) -> None:
    raise Ambiguous(f"{name} is no number in JSON")


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for name, _ in node.value:
            if name.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(name, deep=True)
            if isinstance(key, Hashable) and key in seen:
                problem = f"the key {str(key)[:_SHOWN]!a} stands twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, name.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
