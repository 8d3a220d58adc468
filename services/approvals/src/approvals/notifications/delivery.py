"""One notice on its way to one target: what is remembered of it between its tries, and when it is tried again."""

from typing import Annotated

from contracts.parts import Json
from contracts.subjects import RunKey
from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Undelivered(Exception):
    """A try that came to nothing; the message says why. After a `final` one there is no other."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Delivery(BaseModel):
    """`sequence` is where the log holds the fact, `target` what the target is remembered by, `tries` those before."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tenant: str
    run: str
    sequence: Annotated[int, Field(ge=1)]
    target: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    tries: Annotated[int, Field(ge=0)] = 0

    @property
    def key(self) -> RunKey:
        return RunKey(self.tenant, self.run)

    @property
    def timer(self) -> str:
        """One timer a try, so that a repetition of this try replaces itself and never the next one."""
        return f"{self.tenant}.{self.run}.{self.sequence}.{self.target}.{self.tries}"

    def body(self) -> Json:
        return self.model_dump()

    def again(self) -> "Delivery":
        return self.model_copy(update={"tries": self.tries + 1})
