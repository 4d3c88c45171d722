"""`python -m newfound` is the command `newfound`."""

from newfound.cli import command

command()
