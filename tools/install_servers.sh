#!/bin/sh
# Install the one server that tests need and no wheel brings: MariaDB, from the packages of Debian or Ubuntu. Only the
# programs are taken, without the package that makes a service of them: nothing is started, now or at the next boot.
# Never fails: what is missing is told here, and again by the tests that need it.
set -u
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
PROGRAMS="mariadbd mariadb-install-db my_print_defaults"
PACKAGES="mariadb-server-core mariadb-client-core"

complete() {
    for program in $PROGRAMS; do
        command -v "$program" >/dev/null 2>&1 || return 1
    done
}

tell() {
    echo "**********************************************************************************************************" >&2
    echo "MariaDB is missing: $1" >&2
    echo "The tests that need it will FAIL. Two ways out:" >&2
    echo "  * install the programs $PROGRAMS with what your system has for that," >&2
    echo "    on Debian and Ubuntu: apt-get install --no-install-recommends $PACKAGES" >&2
    echo "  * leave those tests out: TENURE_WITHOUT_MARIADB=1 make test" >&2
    echo "**********************************************************************************************************" >&2
    exit 0
}

complete && exit 0
if [ "${TENURE_WITHOUT_MARIADB:-}" = 1 ]; then
    echo "MariaDB is not installed, as TENURE_WITHOUT_MARIADB=1 asks; tests that need it will be skipped" >&2
    exit 0
fi

command -v apt-get >/dev/null 2>&1 || tell "it is not installed, and there is no apt-get here to install it with"
if [ "$(id -u)" = 0 ]; then
    as_root="env"
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n env"
else
    tell "it is not installed, and installing it takes root or a sudo that asks for no password"
fi

echo "installing MariaDB's programs with apt-get"
quietly() {
    # shellcheck disable=SC2086  # the words of the prefix are meant to be split
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >/dev/null
}
quietly update || tell "apt-get update failed"
# shellcheck disable=SC2086
quietly install -y --no-install-recommends $PACKAGES || tell "apt-get install failed"
complete || tell "the packages were installed, but not all programs are there"
