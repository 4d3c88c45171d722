"""`newfound review`: decide on the categories of a run, on a page in the browser."""

import argparse
import getpass
import secrets
import socket
import sys
from contextlib import suppress

from newfound.cli.flags import Commands, add_run_folder, new_command
from newfound.errors import InputError
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "review",
        run,
        "decide on the categories of a run, on a page in the browser",
        "Open the report of a run as a page on which categories can be accepted, rejected, "
        "renamed, merged and split, and texts moved. Each decision is added to "
        "RUN/decisions.jsonl at once. The page is served on this machine only, at an address with "
        "a secret token; Ctrl-C ends the server. Needs the extra review.",
    )
    add_run_folder(command)
    command.add_argument(
        "--author",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="name that is written with each decision (default: the name of your account)",
    )
    command.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=0,
        help="port of the server; 0 takes a free one",
    )
    command.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address, and do not open a browser",
    )


def run(options: argparse.Namespace) -> None:
    """Serve the review of a run until Ctrl-C."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise InputError("the review is served by an extra: install newfound[review]") from None
    from newfound.review.server import make_app
    from newfound.review.session import Session

    session = Session(options.folder, getattr(options, "author", None) or _user())
    with _listen(options.port) as listener:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{port}/?token={token}"
        print(f"Open {address}", flush=True)
        print("Ctrl-C ends the review; decisions are saved as you make them.", flush=True)
        if not options.no_browser:
            _open_browser(address)
        config = uvicorn.Config(
            make_app(session, token, port),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        # The server ends on Ctrl-C, and then passes the signal on.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    made = plural(len(session.log.entries), "line")
    print(f"The review has ended; {options.folder}/decisions.jsonl has {made}.")


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine only."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be from 0 to 65535, not {port}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # before the address is printed
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} cannot be used ({error.strerror or error}); choose another --port"
        ) from error
    return listener


def _user() -> str:
    """Return the name of the account."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such account, as in some containers
        return "unknown"


def _open_browser(address: str) -> None:
    """Open the page, if there is a browser."""
    import webbrowser

    try:
        webbrowser.open(address)
    except webbrowser.Error:
        print("No browser was found; open the address yourself.", file=sys.stderr)
