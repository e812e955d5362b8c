"""What two gateways say to one another where one stands behind the other, on pipes.

A server that speaks HTTP may close the stream of a request before its answer, and let the client
come back for it (2025-11-25). Pipes have no such streams; so that a client in front of both
gateways sees what it would see without them, the one behind tells the one before of it. It does
so only after the one before has said that it is a gateway, which that says only to one that has
announced to understand it: other clients and servers never see any of this.
"""

from __future__ import annotations

from typing import Final

from .frame import Frame, Id, frame_of

#: "I am a gateway, too": sent by the one before.
HELLO: Final = "notifications/dev.mcp-envelope/gateway"
#: "The stream of this request was closed; its answer comes later": sent by the one behind.
SUSPENDED: Final = "notifications/dev.mcp-envelope/suspended"
#: The member of what a gateway announces that says it understands this.
ANNOUNCED: Final = "hops"


def hello() -> Frame:
    """The notification by which a gateway makes itself known."""
    return frame_of({"jsonrpc": "2.0", "method": HELLO})


def suspended(id: Id) -> Frame:
    """The notification that the stream of a request was closed before its answer."""
    params = {"requestId": id}
    return frame_of({"jsonrpc": "2.0", "method": SUSPENDED, "params": params})
