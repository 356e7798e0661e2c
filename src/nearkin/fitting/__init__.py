"""The best model for one's own images, and what it is worth on classes that it has never seen.

    fit           fit: what `nearkin.fit` does, from a folder to a model
    _start        the network and the losses that it knows
    _plan         what can be done with so many classes in so many minutes: pure arithmetic
    _costs        what the runs take
    estimate      the worth of training, class by class
    fitted        Fitted: what came out
    in_words      the same in words and in a table
    stored        the same, read from the store

They are imported from these modules, so that no module is hidden by a call of its name.
"""
