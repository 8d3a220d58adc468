"""The packs of every tenant, read from `<tenants_dir>/<tenant>/policy.yaml` when the service starts."""

from pathlib import Path

from policy.pack import InvalidPack, PolicyPack, parse


class NoPack(LookupError):
    """A tenant without a policy: nothing of theirs is judged and nothing runs. Their runs fail until there is one."""


class Packs:
    def __init__(self, tenants_dir: Path) -> None:
        """Raises InvalidPack, naming file, line and field, if any tenant's pack is wrong."""
        self._dir = tenants_dir
        self._packs: dict[str, PolicyPack] = {}
        wrong: list[str] = []
        for path in sorted(tenants_dir.glob("*/policy.yaml")):
            try:
                self._packs[path.parent.name] = parse(path.read_text(encoding="utf-8"), source=str(path))
            except InvalidPack as error:
                wrong.append(str(error))
        if wrong:
            raise InvalidPack("\n".join(wrong))

    def of(self, tenant: str) -> PolicyPack:
        if tenant not in self._packs:
            path = self._dir / tenant / "policy.yaml"
            raise NoPack(f"Tenant {tenant} has no policy pack, so nothing runs there. Write {path} and restart policy.")
        return self._packs[tenant]
