"""The method of this project, the default: see `method` for its steps."""

from newfound.methods.newfound.method import EFFORTS, NewfoundConfig, fit

__all__ = ["EFFORTS", "NewfoundConfig", "fit"]
