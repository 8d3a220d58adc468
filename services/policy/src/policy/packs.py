"""The packs of every tenant: the one that was promoted last, else `<tenants_dir>/<tenant>/policy.yaml`."""

from pathlib import Path

import structlog
from contracts.events import Event
from contracts.tenant_facts import PolicyPromoted

from policy.pack import InvalidPack, PolicyPack, check_currency, parse

logger = structlog.get_logger()


class Packs:
    def __init__(self, tenants_dir: Path) -> None:
        """Raises InvalidPack, naming file, line and field, if any tenant's pack is wrong."""
        self._dir = tenants_dir
        self._packs: dict[str, PolicyPack] = {}
        wrong: list[str] = []
        for path in sorted(tenants_dir.glob("*/policy.yaml")):
            try:
                pack = parse(path.read_text(encoding="utf-8"), source=str(path))
                check_currency(pack, source=str(path))
                self._packs[path.parent.name] = pack
            except InvalidPack as error:
                wrong.append(str(error))
        if wrong:
            raise InvalidPack("\n".join(wrong))

    def of(self, tenant: str) -> PolicyPack | None:
        """The tenant's pack. None where there is none: then nothing of theirs may run."""
        if tenant not in self._packs:
            path = self._dir / tenant / "policy.yaml"
            do = f"promote a pack, or write {path} and restart policy"
            logger.error("no policy pack: every turn is refused", tenant=tenant, do=do)
        return self._packs.get(tenant)

    def currency(self, tenant: str) -> str | None:
        """What the tenant's money is in, as far as its pack says."""
        pack = self._packs.get(tenant)
        return pack.currency if pack else None

    def hear(self, event: Event) -> None:
        """A fact of a tenant's own line. A promoted pack is used from now on, unless it cannot be read or is not the
        one that was checked: then the pack before stays."""
        if not isinstance(event.fact, PolicyPromoted):
            return
        tenant, promoted = event.key.tenant, event.fact
        try:
            pack = parse(promoted.text, source="promoted pack")
            if pack.stamp != promoted.pack:
                raise InvalidPack(f"its text is {pack.stamp}, and {promoted.pack} was promoted")
        except InvalidPack as error:
            logger.error(
                "promoted pack is not used: the one before stays",
                tenant=tenant,
                sequence=event.sequence,
                error=str(error),
                do="promote a pack that turngate policy promote accepts",
            )
            return
        self._packs[tenant] = pack
        logger.info("pack promoted", tenant=tenant, pack=pack.name, version=pack.version, mode=pack.mode)
