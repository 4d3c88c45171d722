"""Adapt an encoder: optimiser, pretraining, masking and the losses."""
