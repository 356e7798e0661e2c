"""The command line: it parses, calls what `nearkin` offers in Python, and prints what comes back.

    app           main: where a command begins, and how an error ends it
    commands      COMMANDS: every command, its panel and the module that holds it

Commands are imported when they are called.
"""
