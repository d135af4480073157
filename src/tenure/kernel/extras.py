"""How what is optional is installed: said wherever it turns out to be missing."""


def how_to_install(extra: str) -> str:
    """Write the command that installs an extra, of the package and in a clone."""
    return f"pip install 'tenure[{extra}]' (in a clone: .venv/bin/pip install -e '.[{extra}]')"
