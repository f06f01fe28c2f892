"""The loop that trains any method: batches, precision, gradients across processes, the run directory and resume."""
