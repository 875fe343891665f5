"""Patterns of text formats, and the descriptions that replace the patterns in error messages."""

from typing import Final

EMAIL: Final = r"^[^@\s]+@[^@\s]+\Z"
HTTPS_URL: Final = r"^https://[^/\s]+\S*\Z"
LSN: Final = r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\Z"

DESCRIPTIONS: Final = {
    EMAIL: "an email address",
    HTTPS_URL: "an HTTPS URL",
    LSN: "an LSN like 0/1A2B3C",
}
