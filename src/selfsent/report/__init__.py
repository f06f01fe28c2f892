"""What a person reads: model cards, tables, plots."""
