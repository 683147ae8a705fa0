"""Where the server listens and what address people are told."""

from __future__ import annotations

import errno
import ipaddress
import socket

DEFAULT_PORT = 8000
PORTS_TO_TRY = 100


class PortTaken(Exception):
    """The port that was asked for is in use."""


class UnknownHost(Exception):
    """The address that was asked for is not one of this machine's."""


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket on `host`: at `port`, or at the first free one from DEFAULT_PORT on.

    The supervisor holds it and hands it to the web server, so nobody can take the port between the look and the start, and a web server
    that is started again has the same one. Raises PortTaken, UnknownHost.
    """
    try:
        family, _, _, _, _ = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UnknownHost(f"{host}: {error.strerror or error}") from error
    taken: OSError | None = None
    for candidate in [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TO_TRY):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(512)
        except PermissionError as error:
            listener.close()
            raise PortTaken(f"port {candidate} of {host} is for the system's administrator only") from error
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRNOTAVAIL:
                raise UnknownHost(f"{host} is not an address of this machine") from error
            taken = error
            continue
        return listener
    where = f"port {port} of {host}" if port is not None else f"no port of {host} from {DEFAULT_PORT} to {DEFAULT_PORT + PORTS_TO_TRY - 1}"
    raise PortTaken(f"{where} is {'in use' if port is not None else 'free'}") from taken


def outward_address() -> str:
    """This machine's address as its network sees it; the loopback address where it has no network. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket only chooses a route. 192.0.2.1 is reserved for documentation.
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            pass
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def url(host: str, port: int) -> str:
    """The address that links carry: the name that was asked for, or this machine's outward address for "every address"."""
    name = outward_address() if is_any(host) else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def own_names() -> list[str]:
    """Names under which teammates may reach this machine."""
    return sorted({name for name in (socket.gethostname(), socket.getfqdn()) if name})
