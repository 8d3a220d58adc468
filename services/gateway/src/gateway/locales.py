"""How amounts are written for the person who asks: by their tenant's locale, set once it is known who they are."""

from contextvars import ContextVar

LOCALE: ContextVar[str] = ContextVar("locale", default="")
