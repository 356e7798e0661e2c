"""Training: from batches of images to a chosen model.

    loop          fit: the training loop; Progress, model_file
    objective     Objective = loss + miner + regularisers; build_objective, as_loss, as_miner
    batches       load_batches: batches on their way to the network; seed_of
    gradient      batch_loss: the gradient of one batch, in one pass or two
    optimise      make_optimiser, schedule, clip
    embed         embed: from rows of a source to their embeddings
    device        pick_device, devices
    precision     half, trap: half precision, and machines that cannot use it
    distributed   ranks, joined: several processes
    stops         Stops: Ctrl-C and SIGTERM during training
    allocator     tune_allocator, skip_memory_fill, release

They are imported from these modules: `device` and `precision` need neither the models nor the losses.
"""
