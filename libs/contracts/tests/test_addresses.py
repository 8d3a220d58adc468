"""By what an e-mail address is compared: what does not matter, and what makes it another mailbox, or nobody's."""

import unicodedata

import pytest
from contracts.addresses import comparable, same_mailbox
from contracts.identity import Principal
from contracts.parts import Customer
from contracts.people import is_the_customer
from hypothesis import given
from hypothesis import strategies as st

from .stories import person
from .test_people import bearer

NFD_JOSE = unicodedata.normalize("NFD", "josé@mail.example")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tom@mail.example", "  Tom@MAIL.Example\n"),
        ("tom@mail.example", "tom@mail.example."),
        ("josé@mail.example", NFD_JOSE),
        ("josé@mail.example", unicodedata.normalize("NFD", "JOSÉ@mail.example")),
        ("straßer@mail.example", "STRAẞER@mail.example"),
        ("\u1e96@mail.example", "H\u0331@mail.example"),  # composed as a small letter only
        ("νίκος@mail.example", "ΝΊΚΟΣ@mail.example"),
        ("νίκος.παπάς@mail.example", "ΝΊΚΟΣ.ΠΑΠΆΣ@mail.example"),
        ("王芳@mail.example", "王芳@MAIL.EXAMPLE"),
        ("tom@bücher.example", "tom@xn--bcher-kva.example"),
        ("tom@bücher.example", "tom@BÜCHER.example"),
        ("tom@mail.example", "tom@ｍａｉｌ。example"),
        ("josé@mail.example", "\u00a0JOSÉ@mail.example\u3000"),
    ],
)
def test_these_are_one_mailbox(one: str, other: str) -> None:
    assert same_mailbox(one, other)
    assert same_mailbox(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("straßer@mail.example", "strasser@mail.example"),
        ("straßer@mail.example", "STRASSER@mail.example"),
        ("ılkay@mail.example", "ilkay@mail.example"),
        ("İlkay@mail.example", "ilkay@mail.example"),
        ("İlkay@mail.example", "i\u0307lkay@mail.example"),
        ("\N{KELVIN SIGN}im@mail.example", "kim@mail.example"),
        ("o\u1fefhara@mail.example", "o`hara@mail.example"),
        ("ｔｏｍ@mail.example", "tom@mail.example"),
        ("ﬁona@mail.example", "fiona@mail.example"),
        ("tom²@mail.example", "tom2@mail.example"),
        ("tоm@mail.example", "tom@mail.example"),  # with a Cyrillic о
        ("tom@mаil.example", "tom@mail.example"),  # with a Cyrillic а
        ("tom@straße.example", "tom@strasse.example"),
        ("tom+refunds@mail.example", "tom@mail.example"),
        ("t.om@mail.example", "tom@mail.example"),
        ("tom@mail.example.org", "tom@mail.example"),
        ("josé@mail.example", "jose@mail.example"),
        ("νίκος@mail.example", "νίκοσ@mail.example"),
    ],
)
def test_these_are_two(one: str, other: str) -> None:
    assert not same_mailbox(one, other)
    assert not same_mailbox(other, one)


@pytest.mark.parametrize(
    "address",
    [
        "", "  ", "\t", "tom", "@", "tom@", "@mail.example", "tom@@mail.example", "tom@a@mail.example",
        "tom whitfield@mail.example", "tom@mail .example", "to\u200bm@mail.example", "tom\u200d@mail.example",
        "tom@ma\u00adil.example", "\u202etom@mail.example", "to\u034fm@mail.example", "to\u3164m@mail.example",
        "tom\ufe0f@mail.example", "to\x00m@mail.example", "to\ud800m@mail.example", '"tom"@mail.example',
        '"a b"@mail.example', "tom@[127.0.0.1]", ".tom@mail.example", "t..om@mail.example", "tom@mail..example",
        "tom@mail.example..", "Tom <tom@mail.example>", "tom@mail.example,jo@mail.example", "tom@-mail.example",
        "tom@xn--a.example", "tom＠mail.example", f"{'a' * 65}@mail.example", f"tom@{'a' * 400}.example",
        "[erased]", "c-1004@erased.invalid",
    ],
)  # fmt: skip
def test_these_are_nobodys_not_even_their_own(address: str) -> None:
    assert comparable(address) is None
    assert not same_mailbox(address, address)
    assert not same_mailbox(address, None)
    assert not same_mailbox(None, None)


parts = st.one_of(st.text(min_size=1, max_size=8), st.from_regex(r"[a-zA-Zéßσçñ王.+'-]{1,8}", fullmatch=True))
domains = st.one_of(
    st.sampled_from(["mail.example", "Bücher.example", "xn--bcher-kva.example", "ΝΊΚΟΣ.example", "ẞ.example"]),
    st.builds("{}.example".format, parts),
)
addresses = st.one_of(st.text(), st.builds("{}@{}".format, parts, domains))


@given(addresses)
def test_the_compared_form_of_an_address_is_its_own(address: str) -> None:
    known = comparable(address)
    assert known is None or comparable(known) == known
    assert same_mailbox(address, address) is (known is not None)


@given(addresses, addresses)
def test_who_is_compared_with_whom_does_not_matter(one: str, other: str) -> None:
    assert same_mailbox(one, other) is same_mailbox(other, one)
    if same_mailbox(one, other):
        assert comparable(one) == comparable(other) != None  # noqa: E711 - of both


@given(addresses)
def test_blanks_around_it_and_how_accents_are_typed_never_matter(address: str) -> None:
    known = comparable(address)
    if known is not None:
        assert comparable(f" {address}\n") == known
        assert comparable(unicodedata.normalize("NFD", address)) == known


@given(addresses)
def test_nothing_beyond_ascii_becomes_a_mailbox_of_ascii_letters_before_the_at(address: str) -> None:
    known = comparable(address)
    if known is not None and known.partition("@")[0].isascii():
        assert address.partition("@")[0].strip().isascii()


@pytest.mark.parametrize(
    ("customer", "email", "is_theirs"),
    [
        ("straßer@mail.example", "STRAẞER@mail.example", True),
        ("straßer@mail.example", "strasser@mail.example", False),
        ("josé@mail.example", NFD_JOSE, True),
        ("tom@bücher.example", "tom@xn--bcher-kva.example", True),
        ("", "", False),
        (" ", " ", False),
        ("nobody", "nobody", False),
    ],
)
def test_a_person_is_their_own_customer_however_the_address_is_written(
    customer: str, email: str, is_theirs: bool
) -> None:
    bearers: list[Principal] = [bearer("t-77", email), bearer(email)]
    assert [is_the_customer(one, Customer(email=customer)) for one in bearers] == [is_theirs] * 2
    assert is_the_customer(person(email, "lead"), Customer(email=customer)) is is_theirs
