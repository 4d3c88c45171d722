"""Versions of this package and of the packages that a result depends on."""

__version__ = "0.1.0"

PACKAGES = ("numpy", "pandas", "safetensors", "scikit-learn", "scipy", "tokenizers", "torch")


def versions() -> dict[str, str]:
    """Return the versions of Python, newfound and the packages that a result depends on.

    Returns
    -------
    dict of str to str
        Version by name; a package that is not installed is left out.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['newfound', 'numpy']
    """
    # Imported here because `newfound --help` must stay quick.
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "newfound": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
