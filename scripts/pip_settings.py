"""Prints pip's configuration as the environment variables that uv reads, for a shell to evaluate (scripts/bootstrap.sh).

uv does not read pip's files, and many readers sit behind a package mirror that is set there. What is already set for uv stays.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys

# pip's name → uv's variable, and what separates several values there.
VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_EXTRA_INDEX_URL", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
}
OTHER_NAMES = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_EXTRA_INDEX_URL": "UV_INDEX"}


def configured() -> dict[str, str]:
    """pip's settings by name, the stronger place over the weaker: [global], then [install], then the environment."""
    # `pip config get` would read one of the files only.
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    found: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listed.splitlines():
            key, separator, value = line.partition("=")
            if separator and key.startswith(section):
                found[key.removeprefix(section)] = str(ast.literal_eval(value))
    return found


def main() -> None:
    settings = configured()
    for name, (variable, separator) in VARIABLES.items():
        values = settings.get(name, "").split() if separator else [settings.get(name, "")]
        taken = os.environ.get(variable) or os.environ.get(OTHER_NAMES.get(variable, ""))
        if any(values) and not taken:
            print(f"export {variable}={shlex.quote(separator.join(values))}")


if __name__ == "__main__":
    main()
