"""Values and long texts on one line, for people."""

import json


def plain(item: object) -> str:
    if item is None:
        return "none"
    if isinstance(item, bool):
        return "yes" if item else "no"
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def excerpt(text: str, length: int = 400) -> str:
    """The text on one line, cut behind a word."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"
