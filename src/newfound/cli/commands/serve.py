"""`newfound serve`: answer requests over HTTP with the model of a run."""

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import Any

from newfound.cli.flags import (
    Commands,
    add_model_flags,
    add_output_flags,
    add_run_folder,
    new_command,
)
from newfound.cli.inputs import model_options
from newfound.cli.output import Output
from newfound.errors import InputError, reason
from newfound.serving.hangups import noting_hangup

TOKEN = "NEWFOUND_TOKEN"  # environment variable
SHORTEST_TOKEN = 16  # characters


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "serve",
        run,
        "answer requests over HTTP with the model of a run",
        "Predict the categories of texts that arrive over HTTP, with the answers of `newfound "
        "predict`. POST /predict takes one text or up to 1,000; /docs describes all requests. "
        "SIGHUP or POST /reload loads the run folder again without a pause; Ctrl-C or SIGTERM "
        f"answers what has arrived and ends. A token in {TOKEN} is required of every request if it "
        "is set, and must be set to listen beyond this machine. Needs the extra serve.",
    )
    add_run_folder(command, "run folder, or a saved model")
    command.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 is every network of this machine",
    )
    command.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=8000,
        help="port to listen on; 0 chooses a free one",
    )
    command.add_argument(
        "--queue",
        metavar="TEXTS",
        type=int,
        default=4096,
        help="texts that may wait; a request beyond them is refused with status 503, and one with "
        "more texts than may ever wait with status 413",
    )
    command.add_argument(
        "--body-limit", metavar="BYTES", type=int, default=4 * 2**20, help="largest body"
    )
    command.add_argument(
        "--text-limit",
        metavar="CHARACTERS",
        type=int,
        default=100_000,
        help="longest text; a request with a longer one is refused with status 413",
    )
    command.add_argument(
        "--connections",
        metavar="N",
        type=int,
        default=1024,
        help="connections at a time; further ones are refused with status 503",
    )
    command.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="longest time until a request is answered or refused",
    )
    add_model_flags(command)
    add_output_flags(command, result=False)


def run(options: argparse.Namespace) -> None:
    """Serve a run until a signal ends it."""
    with noting_hangup() as hangup:
        _serve(options, hangup)


def _serve(options: argparse.Namespace, hangup: threading.Event) -> None:
    """Serve a run; load it again at once if SIGHUP has come meanwhile."""
    token = _token()
    limits = _limits(options)
    # Batches are small, and the other cores have batches of their own.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from newfound.serving.app import make_app
        from newfound.serving.server import Server, is_loopback, listen
        from newfound.serving.service import Limits, Service
    except ImportError as error:
        raise InputError(
            f"serving needs packages that cannot be imported ({reason(error)}): install "
            "newfound[serve]"
        ) from error

    output = Output(options)
    with listen(options.host, options.port) as bound:
        address, port = bound.getsockname()[:2]
        if token is None and not is_loopback(address):
            raise InputError(
                f"{options.host} can be reached from other machines, so a token is required: set "
                f"{TOKEN} to a secret of {SHORTEST_TOKEN} characters or more, or listen on "
                "127.0.0.1"
            )
        with output.stages().stage("loading the model"):
            folder: Path = options.folder.absolute()
            service = Service(folder, model_options(options), Limits(**limits), output.progress)
        output.notes(service.run.notes)
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{port}"

        def ready() -> None:
            output.progress(f"{options.folder} is served at {url}; {url}/docs describes requests")

        Server(make_app(service, token), service, ready, hangup).run(sockets=[bound])
    if service.ended:
        output.progress("all requests were answered")
        return
    output.progress("some texts took too long to be predicted; their requests were refused")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread that still predicts could keep the process, or break its end


def _token() -> str | None:
    """Return the token, None without one."""
    token = os.environ.get(TOKEN)
    if token is None:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InputError(
            f"{TOKEN} must have at least {SHORTEST_TOKEN} printable ASCII characters; make one "
            "with `openssl rand -hex 32`"
        )
    return token


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    """Return the limits of the service, after a check of all numbers."""
    flags = {
        "queue": "--queue",
        "body": "--body-limit",
        "text": "--text-limit",
        "seconds": "--time-limit",
        "connections": "--connections",
    }
    given = {name: vars(options)[flag[2:].replace("-", "_")] for name, flag in flags.items()}
    if not 0 <= options.port < 2**16:
        raise InputError(f"--port must be from 0 to 65535, not {options.port}")
    for name, value in given.items():
        if not 0 < value < float("inf"):
            raise InputError(f"{flags[name]} must be more than 0, not {value:g}")
    return given
