"""The created keys of a session: each is shown once."""

from neonctl_local.console.access.created_keys import MAXIMUM, CreatedKey, CreatedKeys


def created(number: int) -> CreatedKey:
    return CreatedKey(
        key_id=str(number),
        name="laptop",
        token=f"neon_api_key_{number}",
        access="It has access to a project.",
        example="/users/me",
        back="/account/keys",
    )


def test_key_is_returned_once() -> None:
    keys = CreatedKeys()
    keys.keep(created(1))
    assert keys.take("2") is None
    assert [keys.take("1"), keys.take("1")] == [created(1), None]


def test_only_the_newest_keys_are_kept() -> None:
    keys = CreatedKeys()
    for number in range(MAXIMUM + 2):
        keys.keep(created(number))
    assert (keys.take("0"), keys.take("1"), keys.take("2")) == (None, None, created(2))
    keys.clear()
    assert keys.take("3") is None


def test_token_is_in_no_text_of_a_created_key() -> None:
    assert "neon_api_key" not in f"{created(1)!r} {created(1)}"
