"""What a person made of a held call, and how the model is told of it."""

from dataclasses import dataclass

from contracts.parts import Digest, Json

from tools_shop.outcomes import Arguments
from tools_shop.texts import shown


@dataclass(frozen=True, slots=True)
class Edit:
    """The digest of what was held, and the arguments to use instead of the model's."""

    was: Digest
    arguments: Json


def change(asked: Arguments, used: Arguments) -> str:
    """What a person changed, in a sentence to go before the call's result."""
    names = [name for name in {**asked, **used} if asked.get(name) != used.get(name)]
    if not names:
        return "A person approved this as it was asked for. "
    each = " and ".join(f"{name} from {_said(asked.get(name))} to {_said(used.get(name))}" for name in names)
    return f"A person changed {each} before approving. "


def _said(value: object) -> str:
    if value is None:
        return "nothing"
    return shown(value, 200) if isinstance(value, str) else str(value)[:200]
