"""A vocabulary and an encoder from nothing but text: what comes before there is a base to train."""
