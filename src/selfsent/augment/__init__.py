"""Data augmentation on text, made once before training; noise (in `data.views`) works on token ids."""
