"""The help centre: Markdown articles in sections, found by what they mean."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools_shop.embedding import MODEL_ID, Embedder, Vectors
from tools_shop.toolset import Query

# Beyond this cosine distance a passage has nothing to do with the question.
FARTHEST = 0.82
_PASSAGES = 3
_WORD = re.compile(r"\w+")
_HOLLOW = """
    a an and are as at be but by can could do does for from had has have how i
    if in is it its me my no not of on or our please so that the their them there
    they this to us was we were what when where which who why will with would you your
"""
_HOLLOW_WORDS = frozenset(_HOLLOW.split())
_SEARCH = """
select c.article, a.title, c.section, c.body
from help.chunks c join help.articles a on a.tenant = c.tenant and a.slug = c.article
where c.tenant = bound.tenant and c.model = %s and c.embedding <=> %s::public.vector < %s
order by c.embedding <=> %s::public.vector limit %s
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an article under a heading of its own; what is stored, found and cited."""

    article: str
    title: str
    heading: str
    body: str

    @property
    def sentence(self) -> str:
        """What is embedded."""
        return f"{self.title}. {self.heading}. {self.body}"


def articles(directory: Path) -> Iterator[tuple[str, str, list[Section]]]:
    """Each article's name, digest and sections, from the Markdown files of a directory."""
    for path in sorted(directory.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        yield path.stem, hashlib.sha256(text.encode()).hexdigest(), sections(path.stem, text)


def sections(article: str, text: str) -> list[Section]:
    """The sections of an article: a title behind `#`, headings behind `##`, and an introduction if it has one."""
    title, _, rest = text.strip().removeprefix("# ").partition("\n")
    found = []
    for part in re.split(
        r"^## ", f"Overview\n{rest}" if not rest.strip().startswith("## ") else rest, flags=re.MULTILINE
    ):
        heading, _, body = part.strip().partition("\n")
        if body.strip():
            found.append(Section(article, title.strip(), heading.strip(), " ".join(body.split())))
    return found


def words(question: str) -> list[str]:
    """The words of a question that say what it is about."""
    return [word for word in _WORD.findall(question.lower()) if word not in _HOLLOW_WORDS and not word.isdecimal()]


def literal(vector: Vectors) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.7g}" for value in vector.tolist()) + "]"


class HelpCentre:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def ask(self, question: str) -> Query | None:
        """The query for the passages nearest to a question, None where it says nothing."""
        if not words(question):
            return None
        vector = literal(await self._embedder.embed(question))
        return Query(_SEARCH, [MODEL_ID, vector, FARTHEST, vector, _PASSAGES])
