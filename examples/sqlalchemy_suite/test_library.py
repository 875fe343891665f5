"""The tests. They are the same before and after the move."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from sqlalchemy_suite.library import Book, NoCopyLeftError, borrow, readers


async def test_reader_borrows_a_copy(session: AsyncSession) -> None:
    assert await borrow(session, "Emma", "Ann") == 1
    assert await readers(session, "Emma") == ["Ann"]


async def test_every_test_starts_without_loans(session: AsyncSession) -> None:
    assert await readers(session, "Emma") == []


async def test_last_copies_are_lent_once(sessions: async_sessionmaker[AsyncSession]) -> None:
    async def try_to_borrow(reader: str) -> int:
        async with sessions() as session:
            return await borrow(session, "Emma", reader)

    attempts = (try_to_borrow(reader) for reader in ("Ann", "Ben", "Cleo"))
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(NoCopyLeftError) == 1


async def test_new_book_can_be_borrowed(session: AsyncSession) -> None:
    session.add(Book(title="Persuasion", copies=1))
    await session.commit()
    await borrow(session, "Persuasion", "Ann")
    with pytest.raises(NoCopyLeftError):
        await borrow(session, "Persuasion", "Ben")
