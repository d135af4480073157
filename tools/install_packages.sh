#!/bin/sh
# install_packages.sh EXTRAS: install this project into .venv with these extras, editable, in the versions of constraints.txt.
# uv takes a third of pip's time. pip does it where uv cannot be had, and where an index is set in pip's own settings only.
# Nothing is compiled ahead: Python compiles what is imported, which is a part of it.
set -u
project=".[$1]"
export PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1
export UV_CONSTRAINT=constraints.txt UV_BUILD_CONSTRAINT=constraints.txt UV_LINK_MODE=copy UV_NO_CONFIG=1

pip() {
    .venv/bin/python -m pip install -q "$@"
}

if pip uv && .venv/bin/uv pip install -q --python .venv/bin/python -e "$project"; then
    exit 0
fi
echo "uv could not install the packages; pip tries, which takes longer" >&2
pip -e "$project"
