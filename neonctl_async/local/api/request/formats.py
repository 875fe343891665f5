"""Texts of a form: the pattern that they match, and the words for it in a refusal."""

from typing import Final

EMAIL: Final = r"^[^@\s]+@[^@\s]+\Z"
HTTPS_URL: Final = r"^https://[^/\s]+\S*\Z"
LSN: Final = r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\Z"

IN_WORDS: Final = {
    EMAIL: "an email address",
    HTTPS_URL: "an HTTPS URL",
    LSN: "an LSN, as 0/1A2B3C",
}
