"""`newfound methods`: the methods and their settings."""

from support.commands import Command

from newfound.config import settings_of


def test_methods_lists_all_methods_and_the_settings_of_one(command: Command) -> None:
    from newfound.methods import METHODS

    done = command("methods")
    assert done.code == 0
    for name, method in METHODS.items():
        assert name in done.out
        assert method.summary in done.out
        one = command("methods", name).out
        for setting, _, default, help in settings_of(method.config):
            assert f"{setting}={default}" in one
            assert help in one
        for effort in method.efforts:
            assert f"effort {effort}:" in one
