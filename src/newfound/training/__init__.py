"""Training: optimiser, pretraining, masking and losses."""
