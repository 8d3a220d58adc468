"""The help centre: what is stored, found and cited, and how often the right article comes first."""

import hashlib
from pathlib import Path

import pytest
from tools_shop import demo, embedding, help_centre, recall, seeding
from tools_shop.embedding import Embedder, WrongModel

from .shops import TENANTS, Shop

ACME = TENANTS / "acme"


@pytest.fixture
def stocked(acme: Shop, tmp_path: Path) -> Shop:
    """A help centre of a few articles."""
    for name in ("payment", "returns", "stores"):
        (tmp_path / f"{name}.md").write_text((ACME / "help" / f"{name}.md").read_text())
    stock(acme, tmp_path)
    return acme


def stock(shop: Shop, directory: Path) -> None:
    with shop.owner.transaction():
        shop.owner.execute("select set_config('turngate.tenant', %s, true)", [shop.tenant])
        seeding.write_articles(shop.owner, shop.tenant, directory)


async def search(shop: Shop, question: str):
    [result] = await shop.run(("search_help_centre", {"question": question}))
    return result


async def test_an_answer_cites_article_and_section(stocked: Shop):
    found = await search(stocked, "My app shows the same payment two times")
    assert found.data["citations"][0] == {
        "article": "payment",
        "title": "Paying and being charged",
        "section": "Two charges on your statement",
    }
    assert found.content.startswith("[payment / Two charges on your statement]")


@pytest.mark.parametrize("question", ["the of and", "😡😡😡", "%", "purple elephants dance at midnight"])
async def test_where_nothing_fits_it_says_so(stocked: Shop, question: str):
    found = await search(stocked, question)
    assert not found.is_error
    assert found.content.startswith("Nothing was found")


async def test_a_tenant_finds_its_own_articles_only(stocked: Shop, open_shop):
    other = open_shop(demo.read(ACME / "demo.yaml"))
    assert (await search(other, "How do refunds work?")).content.startswith("Nothing was found")


async def test_each_passage_keeps_the_name_of_the_model_that_placed_it(stocked: Shop):
    rows = stocked.rows("select distinct model from help.chunks")
    assert rows == [{"model": embedding.MODEL_ID}]


async def test_an_article_that_changed_is_stored_anew_and_one_that_is_gone_is_removed(stocked: Shop, tmp_path: Path):
    for name in ("payment", "stores"):
        (tmp_path / f"{name}.md").unlink()
    (tmp_path / "returns.md").write_text("# Returning\n\n## Never\nNothing can be returned.\n")
    stock(stocked, tmp_path)
    assert stocked.rows("select article, section from help.chunks") == [{"article": "returns", "section": "Never"}]


def test_an_article_is_cut_at_its_headings_and_keeps_its_introduction():
    found = help_centre.sections("a", "# Title\n\nFirst words.\n\n## One\nBody\nof one.\n\n## Two\n\nBody.\n")
    assert [(section.heading, section.body) for section in found] == [
        ("Overview", "First words."),
        ("One", "Body of one."),
        ("Two", "Body."),
    ]


def test_the_right_article_comes_first_for_nine_questions_in_ten():
    assert recall.measure(ACME).at_1 >= recall.GOOD


def test_half_of_the_questions_share_no_word_with_their_article():
    asked = recall.questions(ACME)
    articles = {name: " ".join(s.sentence for s in found) for name, _, found in help_centre.articles(ACME / "help")}
    for one in asked:
        shared = set(help_centre.words(one.question)) & set(help_centre.words(articles[one.article]))
        assert bool(shared) is one.shares_words, (one.question, shared)
    assert len(asked) == 40
    assert sum(not one.shares_words for one in asked) == 20


@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_each_shop_has_at_least_fifteen_articles(tenant: str):
    assert len(list(help_centre.articles(TENANTS / tenant / "help"))) >= 15


def test_a_model_file_that_is_not_the_chosen_one_is_not_used():
    package, name, digest = embedding._TOKENIZER
    assert hashlib.sha256(embedding._checked(package, name, digest).read_bytes()).hexdigest() == digest
    with pytest.raises(WrongModel, match="is not the file that was chosen"):
        embedding._checked(package, name, "0" * 64)


async def test_the_model_is_asked_once_for_the_same_question():
    embedder = Embedder()
    first = await embedder.embed("Where is my parcel?")
    assert await embedder.embed("Where is my parcel?") is first
    await embedder.close()
