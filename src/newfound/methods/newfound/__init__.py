"""The method of this project, the default: see `method` for its steps."""

from newfound.methods.newfound.config import EFFORTS, NewfoundConfig
from newfound.methods.newfound.method import counting_features, fit

__all__ = ["EFFORTS", "NewfoundConfig", "counting_features", "fit"]
