"""`python -m selfsent`, which `torchrun -m selfsent` uses too."""

from selfsent.cli import main

if __name__ == "__main__":
    main()
