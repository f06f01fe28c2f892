"""Recipes: several stages of training in one YAML file, checked as a whole and run one after the other."""

from selfsent.recipes.document import read_document
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.results import StagesRun
from selfsent.recipes.run import check_data, train_stages
from selfsent.recipes.seeds import Seeds, train_seeds

__all__ = [
    "Recipe",
    "Seeds",
    "StagesRun",
    "check_data",
    "read_document",
    "read_recipe",
    "train_seeds",
    "train_stages",
]
