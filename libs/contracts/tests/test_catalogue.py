from pathlib import Path

from contracts import catalogue

PAGE = Path(__file__).parents[3] / "docs" / "events.md"


def test_the_page_of_the_facts_is_what_the_code_says():
    assert PAGE.read_text() == catalogue.page(), "The facts have changed: run `make docs`."
