from neonctl_async.cli.styles import Text, cell_width


def test_text_has_the_codes_of_its_styles() -> None:
    text = Text("Error", "bold red").append(": ").append(Text("no room", "dim"))
    assert text.plain == "Error: no room"
    assert text.ansi() == "\x1b[1;31mError\x1b[0m: \x1b[2mno room\x1b[0m"
    assert Text(", ").join([Text("a"), Text("b", "green")]).ansi() == "a, \x1b[32mb\x1b[0m"


def test_width_counts_the_columns_of_a_terminal() -> None:
    assert cell_width("preview") == 7
    assert cell_width("日本") == 4
    assert cell_width("\uff21") == 2  # a full-width letter
    assert cell_width("e\u0301") == 1
    assert Text().width == 0


def test_long_text_is_cut_with_an_ellipsis() -> None:
    text = Text("pre", "green").append("view")
    assert text.cut(7) is text
    assert text.cut(5).ansi() == "\x1b[32mpre\x1b[0mv…"
    assert text.cut(3).plain == "pr…"
    assert Text("日本語").cut(4).plain == "日…"
