"""`python -m explorer` is the command `explorer`."""

from explorer.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
