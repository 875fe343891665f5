"""The code under test: a library that lends books, written with async SQLAlchemy."""

from collections.abc import Sequence

from sqlalchemy import ForeignKey, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The base class of the models."""


class Book(Base):
    """A title, and the number of copies that the library owns."""

    __tablename__ = "books"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(unique=True)
    copies: Mapped[int]


class Loan(Base):
    """A copy of a book that a reader has borrowed."""

    __tablename__ = "loans"
    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("books.id"))
    reader: Mapped[str]


class NoCopyLeftError(Exception):
    """All copies of a book are borrowed."""


async def borrow(session: AsyncSession, title: str, reader: str) -> int:
    """Lend a copy of a book and commit. Return the id of the loan."""
    async with session.begin():
        # The lock keeps two readers from borrowing the last copy at the same time.
        query = select(Book).where(Book.title == title).with_for_update()
        book = (await session.scalars(query)).one()
        loans = select(func.count()).where(Loan.book_id == book.id)
        if (await session.scalars(loans)).one() >= book.copies:
            raise NoCopyLeftError(title)
        loan = Loan(book_id=book.id, reader=reader)
        session.add(loan)
        await session.flush()
        return loan.id


async def readers(session: AsyncSession, title: str) -> Sequence[str]:
    """Return the readers who have borrowed a book, in alphabetical order."""
    query = select(Loan.reader).join(Book).where(Book.title == title).order_by(Loan.reader)
    return (await session.scalars(query)).all()
