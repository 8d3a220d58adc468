"""How often the help centre's first answer is the right article, over questions that were written down beforehand."""

from dataclasses import dataclass
from pathlib import Path

from contracts.strict import parse_yaml

from tools_shop import help_centre
from tools_shop.embedding import model

GOOD = 0.9


@dataclass(frozen=True, slots=True)
class Question:
    """A customer's question, the article that answers it, and whether the two share words."""

    question: str
    article: str
    shares_words: bool


@dataclass(frozen=True, slots=True)
class Recall:
    """Of one tenant. `misses` pairs each question with the article that came first instead."""

    questions: int
    misses: list[tuple[Question, str]]

    @property
    def at_1(self) -> float:
        return 1 - len(self.misses) / self.questions


def questions(tenant: Path) -> list[Question]:
    return [Question(**entry) for entry in parse_yaml((tenant / "questions.yaml").read_text(encoding="utf-8"))]


def measure(tenant: Path) -> Recall:
    """Recall@1 over the questions of a tenant's directory."""
    sections = [section for _, _, found in help_centre.articles(tenant / "help") for section in found]
    stored = model().embed([section.sentence for section in sections])
    asked = questions(tenant)
    nearest = (model().embed([one.question for one in asked]) @ stored.T).argmax(axis=1)
    firsts = [sections[index].article for index in nearest]
    misses = [(one, first) for one, first in zip(asked, firsts, strict=True) if first != one.article]
    return Recall(len(asked), misses)


def report(tenants_dir: Path) -> int:
    """Prints the misses and the figure of each tenant that has questions; 1 if one of them is not good."""
    worst = 1.0
    for path in sorted(tenants_dir.glob("*/questions.yaml")):
        recall = measure(path.parent)
        for question, first in recall.misses:
            print(f"  {question.question!r}: {first} came before {question.article}")
        print(f"{path.parent.name}: recall@1 {recall.at_1:.2f} over {recall.questions} questions")
        worst = min(worst, recall.at_1)
    return 0 if worst >= GOOD else 1
