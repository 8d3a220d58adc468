"""One notice on its way to one target: what is remembered of it between its tries, and when it is tried again."""

from typing import Annotated

from contracts.parts import Json
from contracts.subjects import RunKey
from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Undelivered(Exception):
    """A try that came to nothing, or not to all; the message says why. After a `final` one there is no other.

    pending: which of an e-mail's recipients are still to have it, by position; none named: all that the try was for.
    refused: what is to be said of those who never will, where there are others who may.
    """

    def __init__(self, why: str, *, final: bool = False, pending: tuple[int, ...] = (), refused: str = "") -> None:
        super().__init__(why)
        self.final, self.pending, self.refused = final, pending, refused


class Delivery(BaseModel):
    """`sequence` is where the log holds the fact, `target` what the target is remembered by, `tries` those before,
    `pending` the positions of an e-mail's recipients that it is for: all where it names none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tenant: str
    run: str
    sequence: Annotated[int, Field(ge=1)]
    target: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    tries: Annotated[int, Field(ge=0)] = 0
    pending: tuple[int, ...] = ()

    @property
    def key(self) -> RunKey:
        return RunKey(self.tenant, self.run)

    @property
    def timer(self) -> str:
        """One timer a try, so that a repetition of this try replaces itself and never the next one."""
        return f"{self.tenant}.{self.run}.{self.sequence}.{self.target}.{self.tries}"

    def body(self) -> Json:
        return self.model_dump(mode="json")

    def again(self, pending: tuple[int, ...] = ()) -> "Delivery":
        return self.model_copy(update={"tries": self.tries + 1, "pending": pending or self.pending})
