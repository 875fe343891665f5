"""Tests with Django, each in a transaction that is rolled back. pytest-django runs them."""

import pytest
from django.contrib.auth.models import User


@pytest.mark.django_db
@pytest.mark.parametrize("number", range(19))
def test_database_has_no_rows_of_other_tests(number: int) -> None:
    """Add a row to a table that is empty."""
    assert not User.objects.exists()
    User.objects.create_user(f"user-{number}")
    assert User.objects.count() == 1
