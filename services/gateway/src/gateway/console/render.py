"""Templates and what they may call. Whatever they print is escaped, and its hidden characters are shown."""

from datetime import UTC, datetime
from typing import Any

from contracts.parts import MOST_ATTEMPTS
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gateway.console import edits, words
from gateway.domain import may_decide
from gateway.obstacles import Circumstances, obstacles, refusing
from gateway.sessions import session_of

_environment = Environment(
    loader=PackageLoader("gateway.console", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda item: words.visible(item) if type(item) is str else item,
)
_environment.globals |= {"words": words, "edits": edits, "may_decide": may_decide, "session_of": session_of}
_environment.globals |= {"obstacles": obstacles, "refusing": refusing, "no_circumstances": Circumstances()}
_environment.globals["most_attempts"] = MOST_ATTEMPTS
_FILTERS = ("money", "sums", "ledger", "spend", "age", "duration", "clock", "stamp", "iso", "changes", "plural")
for _name in (*_FILTERS, "capitalize_first"):
    _environment.filters[_name] = getattr(words, _name)


def page(name: str, **context: Any) -> str:
    """A whole page."""
    return _environment.get_template(name).render(now=datetime.now(UTC), **context)


def part(template: str, macro: str, *values: Any) -> Markup:
    """One macro's output: the same on a page and on a stream."""
    markup: Markup = getattr(_environment.get_template(template).module, macro)(*values)
    return markup
