"""Rendering of pages: the components escape what people type, and are complete without scripts."""

import pytest

from control_plane.tests.console.visitor import Page
from neonctl_local.console.rendering import Rendering, shared_rendering
from neonctl_local.errors import ApiError

HOSTILE = "<script>alert(1)</script>\"'&\u202egnp.exe"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;\u202egnp.exe"


class Session:
    """The session of a person."""

    csrf = "token"


class Visit:
    """A visit, as components need it."""

    session = Session()


@pytest.fixture(scope="module")
def rendering() -> Rendering:
    """The environment of all templates."""
    return shared_rendering()


def render(rendering: Rendering, source: str, **context: object) -> str:
    """Return a call of components."""
    start = '{% import "components.html" as ui with context %}'
    template = rendering.environment.from_string(start + source)
    return template.render(visit=Visit(), **context)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ui.name(text) }}",
        "{{ ui.name('name', text) }}",
        "{{ ui.code(text) }}",
        "{{ ui.status(text, detail=text) }}",
        "{{ ui.badge(text) }}",
        "{{ ui.copyable(text, text) }}",
        "{{ ui.code_block(text, text) }}",
        "{{ ui.head(text, text, text) }}",
        "{% call ui.section('id', text, text, text) %}{{ text }}{% endcall %}",
        "{{ ui.crumbs([(text, text)]) }}",
        "{{ ui.facts([(text, text)]) }}",
        "{{ ui.pager(text, text, text) }}",
        "{{ ui.empty(text, text, text, text) }}",
        "{{ ui.notice(text) }}",
        "{{ ui.warning(text) }}",
        "{{ ui.error(text, text) }}",
        "{{ ui.error(error, text) }}",
        "{% call ui.form(text, text) %}{{ text }}{% endcall %}",
        "{{ ui.confirm(text, text, text) }}",
        "{% call ui.filters(text, text, text) %}{{ text }}{% endcall %}",
        "{{ ui.field('f', text, text, text, text, list=[text, (text, text)], placeholder=text) }}",
        "{{ ui.textarea('f', text, text, text, text) }}",
        "{{ ui.select('f', text, [text, (text, text)], text, text, text) }}",
        "{{ ui.checkbox('f', text, true, text, text) }}",
        "{{ ui.radios('f', text, [(text, text, text)], text, text, text) }}",
        "{{ ui.hidden('f', text) }}",
        "{{ ui.button(text, 'primary', 'b', text, about=text) }}",
        "{{ ui.button(text, disabled=text, about=text) }}",
        "{{ ui.link_button(text, text, about=text) }}",
        "{{ ui.action(text, text, fields={'f': text}, about=text) }}",
        "{% call ui.table('id', text, [text, (text, 'col-id')]) %}{{ text }}{% endcall %}",
    ],
)
def test_every_text_is_escaped(rendering: Rendering, source: str) -> None:
    html = render(rendering, source, text=HOSTILE, error=ApiError(409, HOSTILE, code=HOSTILE))
    assert ESCAPED in html
    assert "<script" not in html
    assert 'alert(1)"' not in html


def test_long_name_is_cut_also_in_its_title(rendering: Rendering) -> None:
    html = render(rendering, "{{ ui.name(text) }}", text="n" * 10_000)
    assert len(html) < 1000
    assert html.count("n" * 300 + "…") == 2


def test_short_name_needs_no_title(rendering: Rendering) -> None:
    assert render(rendering, "{{ ui.name('main') }}") == '<bdi class="name">main</bdi>'


def test_copyable_text_is_not_cut(rendering: Rendering) -> None:
    html = render(rendering, "{{ ui.copyable(text, 'key') }}", text="k" * 1000)
    assert f">{'k' * 1000}</code>" in html


@pytest.mark.parametrize("time", ["2026-11-23T01:02:03Z", 1_795_395_723_000_000])
def test_time_is_readable_and_exact(rendering: Rendering, time: str | int) -> None:
    html = render(rendering, "{{ ui.time(time) }}", time=time)
    shown = "2026-11-23 01:02:03 UTC"
    assert html == f'<time datetime="2026-11-23T01:02:03Z" title="{shown}">{shown}</time>'


def test_field_names_its_help_and_its_error(rendering: Rendering) -> None:
    html = render(rendering, "{{ ui.field('name', 'Name', help='Short.', error='Taken.') }}")
    assert 'aria-describedby="name-error name-help" aria-invalid="true"' in html
    assert '<p class="help" id="name-help">Short.</p>' in html
    assert '<p class="field-error" id="name-error">Taken.</p>' in html


def test_forms_have_the_token_of_the_session(rendering: Rendering) -> None:
    sources = (
        "{% call ui.form('/a') %}{{ ui.field('name', 'Name', 'x') }}{% endcall %}",
        "{{ ui.confirm('/a', 'Delete', '/b') }}",
        "{{ ui.action('/a', 'Start') }}",
    )
    for source in sources:
        (form,) = Page(200, {}, "/", render(rendering, source)).forms
        assert (form.method, form.action, form.fields["csrf"]) == ("post", "/a", "token")


def test_filter_form_has_no_token_because_its_values_are_in_the_url(rendering: Rendering) -> None:
    source = "{% call ui.filters('/a') %}{{ ui.select('s', 'Status', ['OK']) }}{% endcall %}"
    (form,) = Page(200, {}, "/", render(rendering, source)).forms
    assert (form.method, form.fields) == ("get", {"s": "OK"})


def test_disabled_action_gives_its_reason_and_sends_nothing(rendering: Rendering) -> None:
    html = render(rendering, "{{ ui.action('/a', 'Reset', disabled='a root has no parent') }}")
    assert "<form" not in html
    assert 'type="button"' in html
    assert 'aria-disabled="true"' in html
    assert "Not available: a root has no parent" in html


def test_text_area_keeps_a_first_empty_line(rendering: Rendering) -> None:
    source = "{% call ui.form('/a') %}{{ ui.textarea('sql', 'SQL', text) }}{% endcall %}"
    (form,) = Page(200, {}, "/", render(rendering, source, text="\nselect 1")).forms
    assert form.fields["sql"] == "\nselect 1"
