"""The table of verbs, by which only the module of the verb that is called is loaded."""

import typer.main
from turngate.cli import COMMANDS, build


def test_every_verb_is_in_the_table_of_its_module() -> None:
    for verbs in COMMANDS.values():
        for verb in verbs:
            assert set(typer.main.get_command(build(verb)).commands) == set(verbs)  # type: ignore[attr-defined]


def test_without_a_known_verb_all_are_shown() -> None:
    everything = {verb for verbs in COMMANDS.values() for verb in verbs}
    assert set(typer.main.get_command(build("--help")).commands) == everything  # type: ignore[attr-defined]
