"""Programs for developers; the Makefile runs most of them."""
