"""``python -m investigator`` and the ``investigate`` program."""

from investigator.cli import main

if __name__ == "__main__":
    main()
