"""search_help_centre: what the shop's public articles say, with article and section as citation."""

from collections.abc import Awaitable, Callable, Sequence

from tools_shop.arguments import question
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Found, Refusal
from tools_shop.texts import one_line
from tools_shop.toolset import Query, Read, Row, object_schema

Ask = Callable[[str], Awaitable[Query | None]]


def answer(arguments: Arguments, rows: Sequence[Row]) -> Found | Refusal:
    if not rows:
        return Found(
            "Nothing was found in the help centre. Try other words, or pass the ticket to a person.", {"citations": []}
        )
    found = [
        f"[{row['article']} / {row['section']}] {one_line(row['title'], 120)}: {one_line(row['body'], 900)}"
        for row in rows
    ]
    citations = [{"article": row["article"], "title": row["title"], "section": row["section"]} for row in rows]
    return Found("\n\n".join(found), {"citations": citations})


def search_help_centre(ask: Ask) -> Read:
    """The tool over a way to turn a question into a query (None where the question holds no words)."""

    async def query(arguments: Arguments, caller: Caller) -> Query | None:
        return await ask(arguments["question"])

    return Read(
        name="search_help_centre",
        description=(
            "Searches the shop's public help articles (returns, refunds, delivery, damage, subscriptions, warranty and "
            "more) and shows the best passages, each as [article / section]. Cite the article when you use it."
        ),
        takes="question (text)",
        schema=object_schema(
            ["question"], question={"type": "string", "description": "What the customer wants to know, as a sentence."}
        ),
        fields={"question": question},
        free_text=frozenset({"question"}),
        query=query,
        answer=answer,
        quoted=False,
    )
