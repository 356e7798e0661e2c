"""The best model for one's own images, and what it is worth on classes that it has never seen.

    fit           fit: what `nearkin.fit` does, from a folder to a model
    _plan         what can be done with so many classes in so many minutes: pure arithmetic
    _costs        what its runs take
    _start        the network and the losses that it knows
    _estimate     the worth of training, class by class
    _fitted       Fitted: what came out
    _words        the same in words and tables
    _stored       the same from the store

They are imported from these modules, so that no module is hidden by a call of its name.
"""
