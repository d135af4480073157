#!/bin/sh
# Install what tests need and no wheel brings, from the packages of Debian or Ubuntu: MariaDB, a database under Neutron,
# and Chromium, the browser that the web page is tried in, without its windows, which cost tests half of their time. Of
# MariaDB only the programs are taken, without the package that makes a service of them: nothing is started, now or at
# the next boot.
# Never fails: what is missing is told here, and again by the tests that need it.
set -u
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# complete PROGRAM...: tell whether all of them are here.
complete() {
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 || return 1
    done
}

# tell NAME SWITCH PROGRAMS PACKAGES REASON: say loudly what is missing, and the ways out.
tell() {
    echo "**********************************************************************************************************" >&2
    echo "$1 is missing: $5" >&2
    echo "The tests that need it will FAIL. Two ways out:" >&2
    echo "  * install the programs $3 with what your system has for that," >&2
    echo "    on Debian and Ubuntu: apt-get install --no-install-recommends $4" >&2
    echo "  * leave those tests out: $2=1 make test" >&2
    echo "**********************************************************************************************************" >&2
}

quietly() {
    # shellcheck disable=SC2086  # the words of the prefix are meant to be split
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >/dev/null
}

# provide NAME SWITCH PROGRAMS PACKAGES: install the packages unless the programs are here or nobody wants them.
# shellcheck disable=SC2086  # programs and packages are lists of words
provide() {
    complete $3 && return
    if [ "$(eval "echo \"\${$2:-}\"")" = 1 ]; then
        echo "$1 is not installed, as $2=1 asks; tests that need it will be skipped" >&2
        return
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        tell "$@" "it is not installed, and there is no apt-get here to install it with"
        return
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root="env"
    elif sudo -n true 2>/dev/null; then
        as_root="sudo -n env"
    else
        tell "$@" "it is not installed, and installing it takes root or a sudo that asks for no password"
        return
    fi
    echo "installing $1 with apt-get"
    if ! quietly update; then
        tell "$@" "apt-get update failed"
    elif ! quietly install -y --no-install-recommends $4; then
        tell "$@" "apt-get install failed"
    elif ! complete $3; then
        tell "$@" "the packages were installed, but not all programs are there"
    fi
}

provide MariaDB TENURE_WITHOUT_MARIADB "mariadbd mariadb-install-db my_print_defaults" "mariadb-server-core mariadb-client-core"
complete chromium || provide Chromium TENURE_WITHOUT_CHROMIUM "chromium-headless-shell" "chromium-headless-shell fonts-dejavu-core"
