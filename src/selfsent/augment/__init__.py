"""Views from outside: makers turn text into text, once and before training; noise (in `views`) works on token ids."""
