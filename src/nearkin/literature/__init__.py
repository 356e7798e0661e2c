"""What others have published: their tables, the tournament over them, and what they say in words.

tables.py        tables(): 60 tables of five publications, each with its protocol and what is wrong in it (flags.py)
tournament.py    the thesis's ranking of losses, computed again from its tables
claims.py        44 claims of the sources, each checked against the source's own tables
own.py           the same claims, decided from the seeds of a study of one's own: its rows (matching.py) in the
                 claim's experiments (experiments.py) give comparisons (comparisons.py, orders.py), and those
                 p values for the claim and against it (evidence.py)
"""
