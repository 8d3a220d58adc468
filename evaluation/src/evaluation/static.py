"""The half of the evaluation that needs no services: do the labels fit, and does the gate hold its limits?"""

from collections.abc import Iterator
from pathlib import Path

from contracts.strict import parse_yaml
from policy.pack import parse

from evaluation.gate import trials
from evaluation.labels import Labels, problems


def wrong(labels: Labels, tenants: Path) -> Iterator[str]:
    """What is wrong, one sentence each; `tenants` is the directory of the tenants' files."""
    home = tenants / labels.tenant
    pack = parse((home / "policy.yaml").read_text(), "policy.yaml")
    demo = parse_yaml((home / "demo.yaml").read_text())
    yield from problems(labels, demo, tool_kinds(), pack)
    for file in sorted(tenants.glob("*/policy.yaml")):
        for trial in trials(parse(file.read_text(), file.parent.name)):
            if not trial.right:
                yield f"{file.parent.name}: refunds of {trial.amounts} should be {trial.expected}, not {trial.found}."


def tool_kinds() -> dict[str, str]:
    """Every tool of the shop, and whether it is a read or a write."""
    from tools_shop.toolsets.shop import shop

    async def ask(question: str) -> None:
        return None

    return {tool.name: tool.kind for tool in shop(ask).tools.values()}
