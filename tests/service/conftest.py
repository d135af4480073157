"""Load the run's Hypothesis profile before the tests are collected."""

from tests.profiles import load_profile

load_profile()
