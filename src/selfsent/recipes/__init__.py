"""Recipes: several stages of training in one YAML file, checked as a whole and run one after the other."""

from selfsent.recipes.document import read_document
from selfsent.recipes.joined import join_runs
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.result import StagesRun
from selfsent.recipes.run import check_data, train_stages
from selfsent.recipes.seeds import Seeds, over_seeds
from selfsent.recipes.shipped import outline, recipe_file, shipped

__all__ = [
    "Recipe",
    "Seeds",
    "StagesRun",
    "check_data",
    "join_runs",
    "outline",
    "over_seeds",
    "read_document",
    "read_recipe",
    "recipe_file",
    "shipped",
    "train_stages",
]
