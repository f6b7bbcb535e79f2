"""The page's server: a few fixed files, what the model is, and what it hears in a recording.

Nothing is kept: a recording comes whole with each request (while somebody speaks: what there is so far), so that any
number of pages can be open. One recording is worked on at a time, and a few may wait.
"""

import asyncio
import base64
import json
from contextlib import suppress
from copy import copy
from importlib.resources import files
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from margo.errors import MargoError
from margo.tasks.recognising import Recogniser

STATIC = {"": ("page.html", "text/html"), "page.css": ("page.css", "text/css"),
          "page.js": ("page.js", "text/javascript"), "draw.js": ("draw.js", "text/javascript"),
          "tap.js": ("tap.js", "text/javascript")}  # fmt: skip
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "media-src blob:; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
WAITING = 8  # recordings at most, beside the one that is worked on


def about(recogniser: Recogniser, name: str, seconds: float) -> dict:
    """What the page says of the model before anything is heard."""
    hmms = recogniser.hmms
    sizes = {unit.name: unit.n_states for unit in hmms.units}
    states = [max(sum(sizes[unit] for unit in way.units) for way in hmms.lexicon[word]) for word in hmms.words]
    return {"name": name, "words": list(hmms.words), "states": states, "gaussians": hmms.pool.n_gaussians,
            "criterion": hmms.meta.get("criterion", ""), "rate": recogniser.options.sample_rate, "seconds": seconds,
            "grammar": hmms.meta.get("grammar", {}).get("kind", "loop")}  # fmt: skip


def make_ready(recogniser: Recogniser) -> None:
    """Look at a second of hiss, so that all that compiles has done so before somebody speaks."""
    ready, rate = copy(recogniser), recogniser.options.sample_rate or 16000
    ready.pause = None  # so that words are heard, and a runner-up is looked for
    with suppress(MargoError):  # too short for the model's words
        ready.look((np.random.default_rng(0).normal(0, 100, rate).astype(np.float32), rate))


async def body_of(request: Request, most: int) -> bytes | None:
    """What was sent; None where it is more than ``most`` bytes, which are not read to the end."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > most:
        return None
    parts, held = [], 0
    async for part in request.stream():
        held += len(part)
        if held > most:
            return None
        parts.append(part)
    return b"".join(parts)


def same_origin(request: Request) -> bool:
    """Whether a page of this server asks, or no page at all: pages of others are not to use it."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def application(folder, most_mb: float, seconds: float, hosts: list[str]) -> Starlette:
    """The server of the model in ``folder``: recordings of at most so many megabytes and seconds, asked for under one
    of the names ``hosts``."""
    recogniser, most = Recogniser(folder), int(most_mb * 1e6)
    make_ready(recogniser)
    told, turn, waiting = about(recogniser, Path(folder).resolve().name, seconds), asyncio.Lock(), [0]

    def refused(words: str, status: int) -> JSONResponse:
        return JSONResponse({"error": words}, status, HEADERS)

    async def static(request: Request) -> Response:
        name, kind = STATIC[request.url.path.removeprefix("/")]
        return Response((files(__package__) / name).read_bytes(), media_type=kind, headers=HEADERS)

    async def model(request: Request) -> Response:
        return JSONResponse(told, headers=HEADERS)

    async def recognise(request: Request) -> Response:
        if not same_origin(request):
            return refused("another site's page may not use this server", 403)
        if waiting[0] >= WAITING:
            return refused("busy: try again in a moment", 503)
        waiting[0] += 1
        try:
            content = await body_of(request, most)
            if content is None:
                return refused(f"the recording is larger than {most_mb:g} MB", 413)
            async with turn:
                found = await run_in_threadpool(looked_at, recogniser, content, seconds)
        except MargoError as error:
            return refused(str(error), 422)
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            waiting[0] -= 1
        return Response(json.dumps(found), media_type="application/json", headers=HEADERS)

    routes = [Route(f"/{name}", static) for name in STATIC]
    routes += [Route("/model", model), Route("/recognise", recognise, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)])


def looked_at(recogniser: Recogniser, content: bytes, seconds: float) -> dict:
    """What the page draws, of a file's bytes; pictures as base64."""
    found = recogniser.look(content, channel=0, most=seconds, name="the recording")
    for key in ("wave", "spectrogram"):
        shape, kind = list(found[key].shape), found[key].dtype.newbyteorder("<")
        found[key] = {"shape": shape, "data": base64.b64encode(found[key].astype(kind).tobytes()).decode()}
    return found
