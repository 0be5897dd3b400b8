"""The operator's admission webhook: it allows everything; while it is away nobody writes to a host."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any

from pp_hostd.kube.resources import BARE_METAL_HOSTS, Resource
from tests.harness.pki import LOOPBACK, CertificateAuthority

Json = dict[str, Any]
NAME = "baremetal-operator-validating-webhook-configuration"
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)


def lay_webhook(directory: Path) -> Json:
    """Writes its files; returns the configuration by which the API calls it, as the real operator's is."""
    directory.mkdir()
    authority = CertificateAuthority("webhook")
    issued = authority.issue("webhook", sans=LOOPBACK)
    (directory / "webhook.pem").write_bytes(issued.cert_pem + issued.key_pem)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (directory / "port").write_text(str(port))
    rule = {"apiGroups": [BARE_METAL_HOSTS.group], "apiVersions": [BARE_METAL_HOSTS.version]}
    webhook = {
        "name": "baremetalhost.metal3.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/validate",
            "caBundle": b64encode(authority.certificate_pem).decode(),
        },
        "failurePolicy": "Fail",
        "rules": [{**rule, "operations": ["CREATE", "UPDATE"], "resources": [BARE_METAL_HOSTS.plural]}],
        "sideEffects": "None",
    }
    return {"metadata": {"name": NAME}, "webhooks": [webhook]}


async def serve_webhook(directory: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "webhook.pem")
    port = int((directory / "port").read_text())
    server = await asyncio.start_server(_answer, "127.0.0.1", port, ssl=context)
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length:"))
            review = json.loads(await reader.readexactly(length))
            response = {"uid": review["request"]["uid"], "allowed": True}
            body = json.dumps(
                {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
            ).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()
