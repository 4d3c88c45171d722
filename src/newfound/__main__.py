"""`python -m newfound` is the command `newfound`."""

from newfound.cli.main import command

command()
