"""A server on pipes that does what its client asks of it, badly too. Run as a program."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

SEEN: list[str] = []
HUNG: dict[str, dict[str, Any]] = {}
LOCK = threading.Lock()
META = "io.modelcontextprotocol/"


def say(value: object) -> None:
    """Write one message."""
    with LOCK:
        os.write(1, json.dumps(value).encode() + b"\n")


def write(raw: bytes) -> None:
    """Write bytes, all of them."""
    with LOCK:
        while raw:
            raw = raw[os.write(1, raw) :]


def answer(request: dict[str, Any], result: object) -> None:
    """Answer a request."""
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tell(method: str, **params: object) -> None:
    """Send a notification."""
    say({"jsonrpc": "2.0", "method": method, "params": params})


def steps(request: dict[str, Any]) -> None:
    """Report progress (and logs) a few times, then answer."""
    params = request["params"]
    meta = params.get("_meta", {})
    for step in range(params["count"]):
        if "progressToken" in meta:
            tell("notifications/progress", progressToken=meta["progressToken"], progress=step)
        if META + "logLevel" in meta:
            tell("notifications/message", level="info", data=params["mark"])
        time.sleep(0.0005)
    answer(request, {"mark": params.get("mark"), "pid": os.getpid()})


def listen(request: dict[str, Any]) -> None:
    """Acknowledge a subscription and report one change."""
    meta = {META + "subscriptionId": request["id"]}
    tell("notifications/subscriptions/acknowledged", _meta=meta, notifications={})
    tell("notifications/tools/list_changed", _meta=meta)
    HUNG["listen"] = request


def grandchild(request: dict[str, Any]) -> None:
    """Start another process that lives on, and say which."""
    code = "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); "
    code += "print(1, flush=True); time.sleep(60)"
    made = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    assert made.stdout is not None
    made.stdout.readline()
    answer(request, {"pid": os.getpid(), "grandchild": made.pid})


def hang(request: dict[str, Any]) -> None:
    """Leave a request unanswered."""
    HUNG[request["params"].get("name", "")] = request


def release(request: dict[str, Any]) -> None:
    """Answer one that was left."""
    answer(HUNG.pop(request["params"]["name"]), {"released": True})
    answer(request, {})


def die(request: dict[str, Any]) -> None:
    """End by a signal or with an exit code."""
    if "signal" in request["params"]:
        os.kill(os.getpid(), request["params"]["signal"])
    os._exit(request["params"]["code"])


def raw(request: dict[str, Any]) -> None:
    """Write any bytes."""
    text = request["params"]["text"].encode("latin-1")
    write(text.replace(b"@ID@", json.dumps(request["id"]).encode()))
    if request["params"].get("answer"):
        answer(request, {})


def flood(request: dict[str, Any]) -> None:
    """Write many log messages."""
    rest = "x" * request["params"].get("size", 0)
    for number in range(request["params"]["count"]):
        tell("notifications/message", level="info", data=f"{number}{rest}")
    answer(request, {})


def big(request: dict[str, Any]) -> None:
    """Answer at length."""
    text = b'{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}\n'
    write(text % (json.dumps(request["id"]).encode(), b"x" * request["params"]["size"]))


def say_all(request: dict[str, Any]) -> None:
    """Write these messages."""
    for value in request["params"]["values"]:
        say(value)
    answer(request, {})


def seen(request: dict[str, Any]) -> None:
    """Tell all that was read."""
    answer(request, {"seen": SEEN, "pid": os.getpid()})


def stubborn(request: dict[str, Any]) -> None:
    """Do not end, whatever happens."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    HUNG["stubborn"] = request
    answer(request, {})


def deaf(request: dict[str, Any]) -> None:
    """Read no more."""
    answer(request, {})
    time.sleep(600)


def mute(request: dict[str, Any]) -> None:
    """Say no more."""
    os.close(1)
    time.sleep(600)


def echo(request: dict[str, Any]) -> None:
    """Say who answers."""
    answer(request, {"params": request.get("params"), "pid": os.getpid()})


def in_background(request: dict[str, Any]) -> None:
    """Do steps beside other things."""
    threading.Thread(target=steps, args=(request,), daemon=True).start()


DOES = {
    "steps": in_background, "hang": hang, "release": release, "die": die, "raw": raw,
    "flood": flood, "big": big, "say": say_all, "seen": seen, "stubborn": stubborn,
    "deaf": deaf, "mute": mute, "grandchild": grandchild, "subscriptions/listen": listen,
}  # fmt: skip


def main() -> None:
    """Serve until the input ends; a stubborn one goes on for long after that."""
    for line in sys.stdin.buffer:
        SEEN.append(line.decode())
        message = json.loads(line)
        if "id" in message and "method" in message:
            DOES.get(message["method"], echo)(message)
    while "stubborn" in HUNG:
        time.sleep(1)


main()
