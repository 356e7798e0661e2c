"""The settings of a run: how they are written, checked, explained, and named by a hash.

    spec        RunSpec, make_spec: a tree of settings from words, files and recipes
    parse       parse_words, read_yaml, flatten: key=value words and YAML
    parts       the parts of a spec that a name chooses: loss, miner, sampler, ...
    settings    the groups of plain settings: model, train, memory
    born        born, unset: fields that remember their original default
    reading     Reading, settled: which settings are read
    identity    changes, source_of: what the hash of a run covers
    sources     the source of parts from outside nearkin
    recipes     Recipe: the settings of a publication
    explained   Explained: what a setting means, as it is printed
    search      search_space: what tuning may try
    bounds      at_least, above, between, one_of: checks of hyper-parameters

They are imported from these modules: losses and miners need `bounds` alone, not pydantic.
"""
