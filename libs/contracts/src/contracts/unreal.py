"""What a system says of itself where not everything in it is real: whoever composes it knows, and the console and the
sign-in page tell people."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from contracts.models import DEFAULT_BASE_URL

ModelIs = Literal["real", "stand-in"]
ShopIs = Literal["real", "demo"]
_UNREAL = {"stand-in": "no real model", "demo": "no real money"}
_MODEL = {
    "stand-in": "A stand-in that follows rules answers, and no model.",
    "real": "A real model answers, and its calls cost money.",
    None: "It has not been said here whether a real model answers (TURNGATE_MODEL_IS).",
}
_SHOP = {
    "demo": "The shop is the demo's, so nobody is paid anything.",
    "real": "The shop is real: what is paid is paid.",
    None: "It has not been said here whether the shop is real (TURNGATE_SHOP_IS): take its money for real.",
}


@dataclass(frozen=True, slots=True)
class Notice:
    title: str
    detail: str


def model_behind(base_url: str | None) -> ModelIs | None:
    """What answers at the Messages API's address. None where that cannot be known from the address."""
    real, parts = urlsplit(DEFAULT_BASE_URL), urlsplit(base_url or DEFAULT_BASE_URL)
    return "real" if (parts.scheme, parts.hostname) == (real.scheme, real.hostname) else None


def notice(model: ModelIs | None, shop: ShopIs | None) -> Notice | None:
    """What people are told on every page. None only where both are known to be real."""
    if model == "real" and shop == "real":
        return None
    said = [_UNREAL[kind] for kind in (model, shop) if kind in _UNREAL]
    unsaid = [name for name, kind in (("model", model), ("money", shop)) if kind is None]
    if unsaid:
        said.append(f"not said whether the {' and the '.join(unsaid)} {'is' if len(unsaid) == 1 else 'are'} real")
    title = ", ".join(said)
    return Notice(f"{title[:1].upper()}{title[1:]}.", f"{_MODEL[model]} {_SHOP[shop]}")
