"""HTTPS: verified by default, and not to be talked out of it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.upstreams.http_peers import LOOPS, Asked, Talk, answer, request, result, run, scripted

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.upstreams.http import HttpUpstream

CALL = request("tools/call", name="t")


def certify(place: Path, address: str) -> Path:
    """A self-signed certificate and its key, for an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    place.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return place


async def script(talk: Talk, asked: Asked) -> None:
    """Answer."""
    await talk.write(answer(result(asked.json["id"])))


def serving_as(place: Path) -> ssl.SSLContext:
    """The server's side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    return context


@pytest.mark.parametrize("loop", LOOPS)
def test_a_known_certificate_is_accepted(tmp_path: Path, loop: str) -> None:
    """Calls go through, and share a connection."""
    place = certify(tmp_path / "cert.pem", "127.0.0.1")

    async def work() -> None:
        async with scripted(script, ssl=serving_as(place)) as server:
            context = ssl.create_default_context(cafile=place)
            upstream = HttpUpstream("up", server.url, context=context)
            for _ in range(3):
                reply = await upstream.relay().send(CALL, {})
                assert len([item async for item in reply]) == 1
            assert server.connections == 1
            await upstream.close()

    run(work(), loop)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("known", [True, False])
def test_other_certificates_are_not(tmp_path: Path, loop: str, known: bool) -> None:
    """An unknown issuer, or another name: UPSTREAM_UNAVAILABLE says so, and nothing is sent."""
    place = certify(tmp_path / "cert.pem", "127.0.0.2" if known else "127.0.0.1")

    async def work() -> None:
        async with scripted(script, ssl=serving_as(place)) as server:
            context = ssl.create_default_context(cafile=place) if known else None
            upstream = HttpUpstream("up", server.url, context=context)
            with pytest.raises(EnvelopeError, match="certificate that is not accepted") as caught:
                await upstream.relay().send(CALL, {})
            assert caught.value.code == "UPSTREAM_UNAVAILABLE"
            assert "SSL_CERT_FILE" in caught.value.hint
            assert server.asked == []
            await upstream.close()

    run(work(), loop)
