"""Measurements of `newfound serve` under load, on the loopback."""
