"""The API key of a client, from a setting or from a function."""

import asyncio
import inspect
from typing import Final, NoReturn, cast

from neonctl_async._internal import kind_of
from neonctl_async.config import KeyFunction, check_api_key
from neonctl_async.errors import ConfigurationError
from neonctl_async.models.secret import Secret

_EXPECTED: Final = "expected a string or a Secret"


class Answer:
    """A result of the function: its key, or the previous key and why the function failed.

    After a 401, the function is called again only if the request used the latest answer, not just
    the same key, so concurrent 401s call it once.
    """

    __slots__ = ("authorization", "failure", "key")

    def __init__(self, key: Secret, failure: BaseException | None = None) -> None:
        self.key: Secret = key
        self.failure: BaseException | None = failure
        self.authorization: Secret = Secret(f"Bearer {key.reveal()}")
        """The value of the ``Authorization`` header."""


class ApiKey:
    """The API key of a client. With a function, it is unknown until :meth:`first` returns.

    The function must return within ``seconds``.
    """

    def __init__(self, key: Secret, function: KeyFunction | None, seconds: float) -> None:
        self.answer: Answer = Answer(key)
        """The latest answer."""
        self.known: list[Secret] = [key] if key else []
        """The current key and the previous one, which responses may still quote."""
        self._function = function
        self._seconds = seconds
        self._asking = asyncio.Lock()

    async def first(self) -> Answer:
        """Return the answer with the first key. Raises ConfigurationError if there is none.

        Calls that wait for the function share its failure, because it may take a long time to fail.
        """
        before = self.answer
        async with self._asking:
            if self.answer is before:
                self.answer = await self._ask()
        if self.answer.failure is not None and not self.answer.key:
            _raise(self.answer.failure)
        return self.answer

    async def after(self, refused: Answer) -> Answer:
        """Return a newer answer than the one whose key was refused.

        Without a function, return the same answer.
        """
        if self._function is None:
            return refused
        async with self._asking:
            if self.answer is refused:
                self.answer = await self._ask()
            return self.answer

    async def _ask(self) -> Answer:
        assert self._function is not None
        try:
            async with asyncio.timeout(self._seconds):
                result = _hidden(self._function())
                if inspect.isawaitable(result):
                    result = _hidden(await result)
            key = _checked(result)
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # A CancelledError of a task that the function awaits is a failure: a task group would
            # take it for the end of the caller.
            return Answer(self.answer.key, error)
        if key != self.answer.key:
            self.known[:] = [key, *self.known[:1]]
        return Answer(key)


def _hidden(result: object) -> object:
    """Return a result that may be a key as a Secret, so that tracebacks do not show it."""
    if isinstance(result, Secret) or inspect.isawaitable(result):
        return result
    return Secret(cast("str", result))


def _checked(result: object) -> Secret:
    # No variable holds the content of a key of another type, such as bytes.
    if not isinstance(result, Secret):
        raise ConfigurationError(f"its result is {kind_of(result)}: {_EXPECTED}")
    if not isinstance(result.reveal(), str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise ConfigurationError(f"its result is {kind_of(result.reveal())}: {_EXPECTED}")
    return check_api_key(result)


def _raise(failure: BaseException) -> NoReturn:
    reason = f"raised {type(failure).__name__}"
    if isinstance(failure, TimeoutError):
        reason = "did not return in time"
    if isinstance(failure, ConfigurationError):
        reason = f"returned no key: {failure}"
    raise ConfigurationError(f"the function that api_key names {reason}") from failure
