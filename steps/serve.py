"""A page that listens: speak into it or drop a file, and see what a model hears, how surely and why.

Shown are the waveform, the spectrogram, the words with their confidences, the path through the states and the runner-up
with its margin. Only this computer can reach the page unless --host says otherwise; nothing that is said is kept.
Needs the extra serve.

Example: steps/serve.py --model exp/tidigits/mce_1 --port 8000
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of the model")
    host: str = knob("127.0.0.1", "address to listen at; 0.0.0.0 for all of this computer's, from anywhere")
    port: int = knob(8000, "port to listen at; 0 for any that is free", least=0, most=65535)
    most_mb: float = knob(20.0, "largest recording that is taken", unit="MB", above=0, most=1000)
    seconds: float = knob(30.0, "longest recording that is taken", unit="s", above=0, most=60)


def run(options: Options, step):
    import socket

    import uvicorn

    from margo.serve.app import application

    step.input(options.model, made_by="train_ml", current=False)
    local = options.host in ("127.0.0.1", "::1", "localhost")
    names = ["127.0.0.1", "localhost", "["] if local else ["*"]  # [::1] is cut off at its first colon
    step.say(f"serve: making {options.model} ready")
    app = application(options.model, options.most_mb, options.seconds, names)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.create_server((options.host, options.port), family=family) as listening:
        shown = f"[{options.host}]" if ":" in options.host else options.host
        print(f"listening at http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C ends it)", flush=True)
        settings = uvicorn.Config(app, log_level="warning", timeout_keep_alive=5, limit_concurrency=64,
                                  server_header=False)  # fmt: skip
        uvicorn.Server(settings).run(sockets=[listening])


if __name__ == "__main__":
    main(__doc__, Options, run)
