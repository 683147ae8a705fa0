#!/bin/sh
# What ./run and ./test share: the virtual environment, the locked packages, Node, the front end.
#   scripts/bootstrap.sh [dev] [--no-front-end | --packages-only]
# Each step leaves a stamp (sha256 of what it was made from) and is left out while that still holds, so a machine that is set up
# needs no network and no time. See docs/operations.md.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

dev=no front_end=build
for argument in "$@"; do
    case $argument in
        dev) dev=yes ;;
        --no-front-end) front_end=no ;;
        --packages-only) front_end=packages ;;
        *) echo "scripts/bootstrap.sh: unknown argument $argument" >&2; exit 2 ;;
    esac
done

# Two starts of one checkout must not install into one folder at the same time.
if [ -z "${PROBE_BOOTSTRAP_LOCKED:-}" ] && command -v flock >/dev/null 2>&1; then
    PROBE_BOOTSTRAP_LOCKED=1 exec flock .bootstrap.lock "$0" "$@"
fi

say() { printf '%s\n' "$*" >&2; }
die() { say "probe_web: $*"; exit 1; }

sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
digest_of_files() { sha256 "$@" | sha256 | cut -d ' ' -f 1; }
digest_of_front_end() {
    find frontend \( -name node_modules -o -name 'dist*' -o -name '.*' -o -name coverage \) -prune -o -type f -print0 \
        | LC_ALL=C sort -z | xargs -0 sh -c 'if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi' sh \
        | sha256 | cut -d ' ' -f 1
}
stamped() { [ "$(cat ".venv/.stamp-$1" 2>/dev/null)" = "$2" ]; }
stamp() { printf '%s\n' "$2" >".venv/.stamp-$1"; }

# --- Python and its virtual environment -------------------------------------------------------------------------------------------

python_is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && python_is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

apt_install() {
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

make_venv() {
    # What it leads to belongs to another checkout, which would lose its packages.
    [ ! -L .venv ] || die ".venv is a link to $(readlink .venv), which a start here would empty. Remove the link, or start where it leads to"
    python=$(find_python) || {
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then apt_install python3 python3-venv >&2 || true; fi
        python=$(find_python) || die "Python 3.11 or newer is needed and was not found. On Debian or Ubuntu: apt-get install python3 python3-venv"
    }
    say "Making .venv with $("$python" --version)"
    if ! "$python" -m venv --clear .venv >.venv.log 2>&1; then
        # Debian and Ubuntu keep venv's ensurepip in a package of its own.
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then apt_install "$package" >&2 || apt_install python3-venv >&2 || true; fi
        "$python" -m venv --clear .venv >.venv.log 2>&1 || {
            cat .venv.log >&2
            die "python -m venv does not work on this machine. On Debian or Ubuntu: apt-get install $package"
        }
    fi
    rm -f .venv.log
    stamp place "$root"
}

# --- Packages -----------------------------------------------------------------------------------------------------------------------

export PIP_DISABLE_PIP_VERSION_CHECK=1

uv_sync() {
    [ -x .venv/bin/uv ] || return 1
    # Mirrors that pip is configured with.
    eval "$(.venv/bin/python scripts/pip_settings.py)"
    # Every file is checked against the lock's hash, so it does not matter which index it comes from.
    UV_PYTHON_DOWNLOADS=never UV_INDEX_STRATEGY=unsafe-best-match UV_LINK_MODE="${UV_LINK_MODE:-copy}" \
        .venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes "$@"
}

pip_install() {
    set -- $(printf -- '-r %s ' "$@")
    .venv/bin/python -m pip install --quiet --require-hashes "$@"
}

install_packages() {
    say "Installing the locked Python packages"
    if [ ! -x .venv/bin/uv ]; then
        .venv/bin/python -m pip install --quiet --require-hashes -r scripts/uv.txt || say "uv cannot be had here"
    fi
    uv_sync "$@" || {
        say "uv did not install them; pip does (slower)"
        pip_install "$@" || die "the packages of $* could not be installed. See the lines above: most often the network or the package mirror"
    }
}

# A developer's environment stays one when ./run brings it up to date.
[ ! -f .venv/.stamp-dev ] || dev=yes
locks="requirements.txt requirements-build.txt"
[ "$dev" = no ] || locks="$locks requirements-dev.txt"
# A virtual environment does not survive being moved, nor a system's upgrade that takes its Python away.
stamped place "$root" && .venv/bin/python -c '' 2>/dev/null || make_venv
packages_stamp() { printf '%s %s' "$(digest_of_files $locks)" "$(.venv/bin/python --version)"; }
if ! stamped packages "$(packages_stamp)"; then
    rm -f .venv/.stamp-packages
    install_packages $locks
    stamp packages "$(packages_stamp)"
    [ "$dev" = no ] || stamp dev yes
fi

# --- The front end --------------------------------------------------------------------------------------------------------------------

if [ "$front_end" != no ]; then
    want=$(digest_of_files frontend/package.json frontend/package-lock.json requirements-build.txt)
    if ! stamped node-modules "$want" || ! [ -d frontend/node_modules ]; then
        say "Installing the front end's packages"
        rm -f .venv/.stamp-node-modules
        (cd frontend && ../scripts/node npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2) \
            || die "the front end's packages could not be installed. See the lines above: most often the network or npm's registry setting"
        stamp node-modules "$want"
    fi
fi
if [ "$front_end" = build ]; then
    want="$want $(digest_of_front_end)"
    if ! stamped front-end "$want" || ! [ -f frontend/dist/index.html ]; then
        say "Building the front end"
        # Built beside and swapped in, so that a server that runs meanwhile never serves half a build.
        rm -rf frontend/dist.next frontend/dist.old
        (cd frontend && ../scripts/node node_modules/vite/bin/vite.js build --logLevel error --outDir dist.next --emptyOutDir >&2) \
            || die "the front end could not be built. See the lines above"
        .venv/bin/python -m whitenoise.compress --quiet frontend/dist.next
        [ ! -d frontend/dist ] || mv frontend/dist frontend/dist.old
        mv frontend/dist.next frontend/dist
        rm -rf frontend/dist.old
        stamp front-end "$want"
    fi
fi
