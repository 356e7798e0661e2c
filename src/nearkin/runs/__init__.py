"""Runs: trained once, stored under the hash of what they are, tested after they are final.

    fit           train: one run, from its spec to a final model
    test          test: the metrics of a final run
    reproduce     reproduce: train a stored run again, and compare
    embed         load, embed: a trained model for new images
    embed_folder  embed_folder: a folder of images into a file, with classes, and what the run was trained on
    store         Store: all runs of a folder
    run           Run: one run in its directory; RunLocked
    prepare       prepare, Prepared: what is decided before the first step
    data          Data, read_data, read_table, make_split
    defaults      resolve: the values of settings that a spec does not set
    names         run_of: the run of prepared settings in a store
    tested        TestSet: the stored embeddings of the test images
    listing       row, state, describe: runs as rows of a table
    verify        verify: which files are missing, truncated or altered

They are imported from these modules, so that reading a run does not import the training loop.
"""
