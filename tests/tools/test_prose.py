"""The check of the project's English."""

import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import ROOT, TEXTS, code_blocks
from tools.prose.__main__ import main
from tools.prose.passages import Passage, passages
from tools.prose.rules import Rules

WORDS = """
folders = ["package"]
pages = ["README.md"]
longest_sentence = 6

[[word]]
pattern = '(?:wrong|bad) word'
write = '"right word"'

[[allow]]
path = "package/old.py"
phrase = "the wrong word"
reason = "a quotation"
"""


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    words = tmp_path / "words.toml"
    words.write_text(WORDS)
    return Rules(words)


def found(tmp_path: Path, name: str, text: str) -> list[tuple[str, int, str]]:
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return [
        (passage.kind, passage.line, passage.text)
        for passage in passages(path)
        if passage.text.strip()
    ]


@pytest.mark.parametrize(
    ("code", "passage"),
    [
        ('"""A module."""', ("docstring", 1, "A module.")),
        ('x = 1\n"""A constant with `code`."""', ("docstring", 2, "A constant with `x`.")),
        ('"""Call :meth:`close`."""', ("docstring", 1, "Call `x`.")),
        ('"""Tree::\n\n    of names\n"""', ("docstring", 1, "Tree::\n\n\n")),
        ("# one\n# comment", ("comment", 1, "one\ncomment")),
        ("x = 1  # trailing", ("comment", 1, "trailing")),
        ("x = 1  # noqa: E501 # a reason", ("comment", 1, "a reason")),
        ("def test_one_thing(): ...", ("test name", 1, "one thing")),
        ('x = "a message of more words"', ("message", 1, "a message of more words")),
        ('x = f"a message {y} of {z} words"', ("message", 1, "a message `x` of `x` words")),
        ('x = "send the header Bearer <KEY>"', ("message", 1, "send the header Bearer <KEY>")),
    ],
)
def test_prose_of_a_module_is_found(
    tmp_path: Path, code: str, passage: tuple[str, int, str]
) -> None:
    assert found(tmp_path, "module.py", code) == [passage]


@pytest.mark.parametrize(
    "code",
    [
        'x = "three words only"',
        'x = "SELECT name FROM projects WHERE id = ?"',
        'x = "<p>a line of markup here</p>"',
        'x = """\nimport sys\nprint(1, 2, three, four)\n"""',
        "x = 1  # type: ignore[arg-type]",
    ],
)
def test_code_and_short_strings_are_not_prose(tmp_path: Path, code: str) -> None:
    assert found(tmp_path, "module.py", code) == []


def test_code_of_a_page_is_not_prose_but_its_comments_are(tmp_path: Path) -> None:
    page = """\
    See [the docs](https://example.com/wrong).

    ```python
    x = wrong  # a comment
    ```
    End with `code`.
    """
    assert found(tmp_path, "page.md", page) == [
        ("comment", 4, "a comment"),
        ("page", 1, "See the docs.\n\n\n\n\nEnd with `x`."),
    ]


def test_listed_words_are_reported_across_lines(rules: Rules) -> None:
    hits = rules.check(Passage("comment", 7, "fine\nwith a wrong\nword"), "package/new.py")
    assert [(hit.line, hit.message) for hit in hits] == [
        (8, '"wrong word" in a comment: write "right word"')
    ]


def test_exception_covers_its_phrase_in_its_file_only(rules: Rules) -> None:
    passage = Passage("comment", 1, "the wrong word")
    assert len(list(rules.unused())) == 1
    assert list(rules.check(passage, "package/new.py")) != []
    assert list(rules.check(passage, "package/old.py")) == []
    assert list(rules.check(Passage("comment", 1, "a bad word"), "package/old.py")) != []
    assert list(rules.unused()) == []


@pytest.mark.parametrize("opening", ["What", "Whose", "Where", "That", "How", "When", "Whether"])
def test_docstrings_start_with_a_verb_or_a_noun_phrase(rules: Rules, opening: str) -> None:
    bad, good = f"{opening} it does.", "Return whether it does."
    assert [hit.rule for hit in rules.check(Passage("docstring", 1, bad), "x.py")] == ["opening"]
    assert list(rules.check(Passage("docstring", 1, good), "x.py")) == []
    assert list(rules.check(Passage("comment", 1, bad), "x.py")) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("One two. Three\nfour five six seven eight nine.", 1),
        ("One.\n\n- two\n- three four five six seven eight nine", 4),
        ("One two three four five six", None),
        ("One two three four. Five six seven eight.", None),
        ("A list of things:\n\n- one two three four\n- five six seven eight", None),
        ("| one two three four | five six seven eight |", None),
        ("| one |\n|---|\n| one. Two three four | five six seven eight |", None),
        ("| one |\n|---|\n| one | two three four five six seven eight |", 3),
    ],
)
def test_long_sentences_are_reported_where_they_start(
    rules: Rules, text: str, line: int | None
) -> None:
    hits = list(rules.check(Passage("page", 1, text), "x.md"))
    assert [hit.line for hit in hits] == ([line] if line else [])


def test_command_prints_each_hit_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("Poll the operation.\n\nDo it once more.\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == f'{page}:3: "once more" in a page: write "again"\n'
    assert main(["--count", str(page)]) == 1
    assert "1 in all" in capsys.readouterr().out
    page.write_text("Poll the operation.\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["missing.md", "words.toml"])
def test_command_rejects_files_that_it_cannot_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "words.toml").write_text(WORDS)
    with pytest.raises(SystemExit) as exit_status:
        main([str(tmp_path / name)])
    assert exit_status.value.code == 2
    assert f"{name} is neither a folder nor a file" in capsys.readouterr().err


def test_style_guide_shows_a_message_of_the_check() -> None:
    [(_, message)] = code_blocks(TEXTS["docs/style.md"], "text")
    rules = Rules(ROOT / "tools" / "prose" / "words.toml")
    [hit] = rules.check(Passage("page", 12, "told"), "docs/waiting.md")
    assert message == f"docs/waiting.md:{hit.line}: {hit.message}\n"


def test_style_guide_shows_an_exception(tmp_path: Path) -> None:
    [(_, exception)] = code_blocks(TEXTS["docs/style.md"], "toml")
    words = tmp_path / "words.toml"
    words.write_text(WORDS + exception)
    [table] = tomllib.loads(exception)["allow"]
    rules = Rules(words)
    assert list(rules.check(Passage("page", 1, table["phrase"]), table["path"])) == []
    assert not any(table["phrase"] in line for line in rules.unused())
