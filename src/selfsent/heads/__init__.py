"""Where saved models of earlier versions look for their modules; the modules are in `selfsent.models.heads`."""
