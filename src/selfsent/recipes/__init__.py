"""Recipes: several stages of training in one YAML file, checked as a whole and run one after the other."""

from selfsent.recipes.document import read_document as read_document
from selfsent.recipes.recipe import Recipe as Recipe, read_recipe as read_recipe
from selfsent.recipes.results import StagesRun as StagesRun
from selfsent.recipes.run import check_data as check_data, train_stages as train_stages
from selfsent.recipes.seeds import Seeds as Seeds, train_seeds as train_seeds
