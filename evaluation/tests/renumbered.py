"""The demo with every reference, name and amount changed, its labels with it."""

import re
import shutil
from pathlib import Path

from evaluation.labels import Labels
from turngate.people import tenants_directory

from evaluation import labels as labelled

NAMES = {
    "Tom": "Bo", "Whitfield": "Adler", "Priya": "Mei", "Raman": "Lin", "Owen": "Ivo", "Marsh": "Novak",
    "Hannah": "Freya", "Lowe": "Dahl", "Grace": "Noor", "Okonjo": "Haddad", "Piotr": "Hugo", "Zielinski": "Brandt",
    "Marcus": "Luca", "Bell": "Ricci", "Eleanor": "Ines", "Finch": "Duarte", "Ruth": "Tove", "Adeyemi": "Moen",
    "Sofia": "Anja", "Marchetti": "Vogel", "Dylan": "Emre", "Price": "Kaya", "Amara": "Yuki", "Nwosu": "Sato",
    "Daniel": "Pavel", "Okafor": "Horak",
}  # fmt: skip


def renumber(text: str) -> str:
    """References shifted, names exchanged, amounts a fifth larger: none crosses a limit by that."""
    text = re.sub(r"\b(ORD|SUB|TCK|C)-(\d+)", lambda m: f"{m[1]}-{int(m[2]) * 7 + 11}", text)
    text = re.sub(r"(_minor: )(\d+)", lambda m: f"{m[1]}{_more(int(m[2]))}", text)
    text = re.sub(r"£(\d+)(?:\.(\d\d))?", lambda m: _pounds(_more(int(m[1]) * 100 + int(m[2] or 0))), text)
    for old, new in NAMES.items():
        text = re.sub(rf"\b{old}\b", new, text).replace(f"{old.lower()}.", f"{new.lower()}.")
        text = text.replace(f".{old.lower()}@", f".{new.lower()}@")
    return text


def tenants(directory: Path) -> Path:
    """A copy of the tenants' files with acme renumbered."""
    copy = directory / "tenants"
    shutil.copytree(tenants_directory(), copy)
    demo = copy / "acme" / "demo.yaml"
    demo.write_text(renumber(demo.read_text()))
    return copy


def labels() -> Labels:
    old = labelled.load()
    return old.model_copy(
        update={
            "tickets": {
                renumber(ticket): label.model_copy(
                    update={"refunds": {renumber(order): _more(minor) for order, minor in label.refunds.items()}}
                )
                for ticket, label in old.tickets.items()
            }
        }
    )


def _more(minor: int) -> int:
    return minor * 6 // 5


def _pounds(minor: int) -> str:
    return f"£{minor // 100}.{minor % 100:02d}"
