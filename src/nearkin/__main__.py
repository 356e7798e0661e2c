"""`python -m nearkin`."""

from nearkin.cli.app import main

main()
