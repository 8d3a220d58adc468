"""The packs of every tenant, read from `<tenants_dir>/<tenant>/policy.yaml` when the service starts."""

from pathlib import Path

import structlog

from policy.pack import InvalidPack, PolicyPack, parse

logger = structlog.get_logger()


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

    def of(self, tenant: str) -> PolicyPack | None:
        """The tenant's pack. None where there is none: then nothing of theirs may run."""
        if tenant not in self._packs:
            path = self._dir / tenant / "policy.yaml"
            logger.error("no policy pack: every turn is refused", tenant=tenant, do=f"write {path} and restart policy")
        return self._packs.get(tenant)
