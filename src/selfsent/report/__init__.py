"""Reports for people: model cards, tables, pages."""
