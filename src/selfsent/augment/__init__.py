"""Text augmentation, done once before training; noise on token ids is in `data.views`."""
