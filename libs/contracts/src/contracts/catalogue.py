"""The catalogue of facts as a page for people: `python -m contracts.catalogue > docs/events.md`."""

from contracts.examples import EXAMPLES, TENANT_EXAMPLES
from contracts.facts import CATALOGUE, Fact
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import AUTHORS, HEARS, HEARS_TENANTS
from contracts.verify import RULES

_HEAD = """# The facts

Generated from `libs/contracts` by `make docs`; a test holds it against the code. Each fact is the `data` of a
CloudEvent on `run.<tenant>.<run>.<author>.<fact>`; what the log accepted is republished on
`log.run.<tenant>.<run>.<author>.<fact>`. Those of the tenant itself stand in its own line, on
`tenant.<tenant>.<author>.<fact>` and `log.tenant.<tenant>.<author>.<fact>`.
The whole contract, schemas included, is the AsyncAPI document that the gateway serves at `/asyncapi.json`.

## The rules

They hold for every run; `turngate log verify` checks them over any log and names the number of what is broken.

"""


def page() -> str:
    """Markdown: every fact with who says it, who acts on it, what it carries, and an example."""
    services = {author: service for service, author in AUTHORS.items()}
    facts = {**CATALOGUE, **TENANT_FACTS}
    rules = "\n".join(f"{number}. {rule}" for number, rule in RULES.items()) + "\n"
    return "\n".join([_HEAD + rules, *(_section(kind, fact, services[fact.author]) for kind, fact in facts.items())])


def _section(kind: str, fact: type[Fact], service: str) -> str:
    hearers = [hearer for hearer, kinds in (*HEARS.items(), *HEARS_TENANTS.items()) if kind in kinds]
    said = f"Said by {service}."
    heard = f" Heard by {' and '.join(hearers)}." if hearers else ""
    ends = " It ends the run." if fact.terminal else ""
    required = [f"`{name}`" for name, field in fact.model_fields.items() if field.is_required()]
    optional = [f"`{name}`" for name, field in fact.model_fields.items() if not field.is_required()]
    may = f"; it may carry {', '.join(optional)}" if optional else ""
    if kind in TENANT_FACTS:
        said = f"Of the tenant. {said}"
    example = (EXAMPLES | TENANT_EXAMPLES)[kind].model_dump_json(indent=2)
    carries = f"It carries {', '.join(required)}{may}."
    return "\n".join([f"## {kind}", "", said + heard + ends, carries, "", "```json", example, "```", ""])


if __name__ == "__main__":
    print(page(), end="")
