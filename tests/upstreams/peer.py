"""A server on pipes that does what its client asks of it, badly too. Run as a program."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

SEEN: list[str] = []
HUNG: dict[str, object] = {}
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


def answer(request: dict, result: object) -> None:
    """Answer a request."""
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tell(method: str, **params: object) -> None:
    """Send a notification."""
    say({"jsonrpc": "2.0", "method": method, "params": params})


def steps(request: dict) -> None:
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


def listen(request: dict) -> None:
    """Acknowledge a subscription and report one change."""
    meta = {META + "subscriptionId": request["id"]}
    tell("notifications/subscriptions/acknowledged", _meta=meta, notifications={})
    tell("notifications/tools/list_changed", _meta=meta)
    HUNG["listen"] = request


def grandchild(request: dict) -> None:
    """Start another process that lives on, and say which."""
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1,flush=True); time.sleep(60)"
    made = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    assert made.stdout is not None
    made.stdout.readline()
    answer(request, {"pid": os.getpid(), "grandchild": made.pid})


def handle(message: dict) -> None:
    """Do what one message asks for."""
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message or method is None:
        return
    if method == "steps":
        threading.Thread(target=steps, args=(message,), daemon=True).start()
    elif method == "hang":
        HUNG[params.get("name", "")] = message
    elif method == "release":
        answer(HUNG.pop(params["name"]), {"released": True})
        answer(message, {})
    elif method == "die":
        os.kill(os.getpid(), params["signal"]) if "signal" in params else os._exit(params["code"])
    elif method == "raw":
        write(params["text"].encode("latin-1").replace(b"@ID@", json.dumps(message["id"]).encode()))
        if params.get("answer"):
            answer(message, {})
    elif method == "flood":
        for number in range(params["count"]):
            tell(
                "notifications/message",
                level="info",
                data=f"{number}" + "x" * params.get("size", 0),
            )
        answer(message, {})
    elif method == "big":
        text = b'{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}\n'
        write(text % (json.dumps(message["id"]).encode(), b"x" * params["size"]))
    elif method == "say":
        for value in params["values"]:
            say(value)
        answer(message, {})
    elif method == "seen":
        answer(message, {"seen": SEEN, "pid": os.getpid()})
    elif method == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        HUNG["stubborn"] = message
        answer(message, {})
    elif method == "deaf":
        answer(message, {})
        time.sleep(600)
    elif method == "mute":
        os.close(1)
        time.sleep(600)
    elif method == "grandchild":
        grandchild(message)
    elif method == "subscriptions/listen":
        listen(message)
    else:
        answer(message, {"params": params, "pid": os.getpid()})


def main() -> None:
    """Serve until the input ends; a stubborn one goes on for long after that."""
    for line in sys.stdin.buffer:
        SEEN.append(line.decode())
        handle(json.loads(line))
    while "stubborn" in HUNG:
        time.sleep(1)


main()
