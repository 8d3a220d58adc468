"""What the tenant's model calls cost: asked of the agent-runner with the token of whoever asks, and shown."""

from contracts.asks import SPEND
from contracts.parts import Json

from .conftest import World
from .test_api import problem

DAY: Json = {
    "tenant": "acme",
    "day": "2026-11-30",
    "reserved_micro_usd": 0,
    "spent_micro_usd": 1_230_000,
    "saved_micro_usd": 4_000,
    "uncertain_micro_usd": 0,
}


async def test_what_was_spent_is_shown_to_who_may_see_it(world: World) -> None:
    asked = await world.answering("agent-runner", SPEND, {"status": 200, "days": [DAY]})
    async with world.client("sam") as sam, world.client("cust-C-1004") as tom:
        shown = await sam.get("/v1/spend")
        assert (await sam.get("/v1/spend", params={"days": 7})).status_code == 200
        for wrong in (0, 91, "many"):
            problem(await sam.get("/v1/spend", params={"days": wrong}), 422)
        problem(await tom.get("/v1/spend"), 403)
        token = sam.headers["authorization"].removeprefix("Bearer ")
    assert shown.json() == {"days": [DAY]}
    assert asked == [{"token": token, "days": 30}, {"token": token, "days": 7}]


async def test_what_the_runner_refuses_is_passed_on_in_its_words(world: World) -> None:
    no = {"status": 403, "title": "Not yours to see", "detail": "Ask an operator."}
    await world.answering("agent-runner", SPEND, no)
    async with world.client("sam") as sam:
        refused = problem(await sam.get("/v1/spend"), 403)
    assert (refused["title"], refused["detail"]) == ("Not yours to see", "Ask an operator.")
