"""One file for each published protocol, and for the label-free score."""
