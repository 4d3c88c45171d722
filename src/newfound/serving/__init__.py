"""An HTTP service that predicts with the model of a run."""
