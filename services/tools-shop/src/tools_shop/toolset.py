"""A family of tools over one kind of shop: what each takes, reads and writes, and the model's catalogue of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

from contracts.canonical import sha256
from contracts.parts import Json

from tools_shop import arguments
from tools_shop.arguments import Reader
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Done, Found, Refusal
from tools_shop.transaction import Lock, Tables, Transaction
from tools_shop.unit import Unit

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A read and its parameters. Its rows come as JSON, dates as text; it names its tenant as `bound.tenant`."""

    sql: str
    parameters: Sequence[object]

    def bound_to(self, tenant: str) -> tuple[bytes, list[object]]:
        """The one statement that binds row-level security to the tenant and reads; its `rows` are a JSON array.

        The read depends on `bound`, so the tenant is set before any of its tables is looked at.
        """
        return _bound(self.sql), [*self.parameters, tenant]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What both kinds have in common. `takes` names the arguments in words, `schema` for the model's API."""

    name: str
    description: str
    takes: str
    schema: Json
    fields: Mapping[str, Reader]
    hint: str = ""
    forgiving: bool = False  # does what it is for even where its arguments cannot be read
    free_text: frozenset[str] = frozenset()  # arguments that are words for people: no part of the digest
    kind: ClassVar[Literal["read", "write"]]

    def read(self, raw: Any) -> Arguments | Refusal:
        return arguments.read(self.name, self.fields, self.takes, raw, hint=self.hint, forgiving=self.forgiving)


@dataclass(frozen=True, kw_only=True)
class Read(Tool):
    """A tool that changes nothing: one statement, and what its rows say.

    `quoted` is False where running it for a quote would tell policy nothing and costs more than a look-up.
    """

    kind = "read"
    query: Callable[[Arguments, Caller], Awaitable[Query | None]]
    answer: Callable[[Arguments, Sequence[Row]], Found | Refusal]
    quoted: bool = True


@dataclass(frozen=True, kw_only=True)
class Write(Tool):
    """A tool that changes one thing: `apply` is both what quotes it and what does it.

    `locks` are the rows that it changes; `counts` if it also changes the tenant's totals of the day; `harmless` if it
    may go on while everything is stopped.
    """

    kind = "write"
    locks: Callable[[Arguments], frozenset[Lock]]
    apply: Callable[[Transaction, Arguments, Caller, str], Awaitable[Done | Refusal]]
    counts: bool = False
    harmless: bool = False


@dataclass(frozen=True)
class Toolset:
    """`speaking` makes the same tools, with descriptions and explanations that speak of a run's own currency."""

    name: str
    version: str
    tables: Tables
    tools: Mapping[str, Read | Write]
    speaking: Callable[[Unit], "Toolset"] | None = None
    catalogue: Json = field(init=False)

    def of(self, unit: Unit) -> "Toolset":
        return self.speaking(unit) if self.speaking is not None else self

    def __post_init__(self) -> None:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema, "kind": tool.kind}
            for tool in self.tools.values()
        ]
        object.__setattr__(self, "catalogue", {"tools": tools, "version": self.version, "digest": sha256(tools)})


@lru_cache(maxsize=64)
def _bound(sql: str) -> bytes:
    return f"""
    select coalesce((select json_agg(answer) from ({sql}) answer), '[]') as rows
    from (select set_config('turngate.tenant', %s, true) as tenant offset 0) bound
    """.encode()  # noqa: S608 - the tools' own statements


def object_schema(required: Sequence[str], **properties: Json) -> Json:
    """The strict JSON Schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
