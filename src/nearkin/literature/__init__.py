"""What others have published: their tables, the tournament over them, and what they say in words.

    shown         published, Published: what `nearkin.published` returns
    tables        tables, table, sources: 69 tables of five publications, each with its protocol and what is wrong in it
    table         PublishedTable, Cell: one of them
    inventory     items: every item of the sources, and where nearkin has it
    claims        claims, claim: 44 claims of the sources, each checked against the source's own tables
    decisions     the same claims, decided from the seeds of a study of one's own
    matching      StudyRow: which row of a study is which row of a claim

How a claim is decided: own rows in the claim's experiments (_experiments) give comparisons (_comparisons, _orders),
and those p values for the claim and against it (_evidence).
"""
