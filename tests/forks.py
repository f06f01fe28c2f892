"""What another process finds: forked, as a new one would import for seconds."""

import multiprocessing


def told_by(work):
    """The result of a function in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(work()))
    process.start()
    sender.close()
    found = receiver.recv()
    process.join(60)
    return found
