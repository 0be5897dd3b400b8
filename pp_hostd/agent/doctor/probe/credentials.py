"""When the credentials run out: the client's certificate, the authority's, the servers', and a token that tells it."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from collections.abc import Iterator
from datetime import datetime, timezone

from pp_hostd.agent.doctor.facts import Expiring, NotKnown
from pp_hostd.errors import UserError
from pp_hostd.kube.certificate import Certificate, expiry
from pp_hostd.kube.kubeconfig import Kubeconfig, Material
from pp_hostd.model.endpoint import Endpoint

CONNECT_SECONDS = 4.0
CLIENT, AUTHORITY, SERVER, TOKEN = "client-certificate", "authority", "server-certificate", "token"


def expiring(kubeconfig: Kubeconfig, in_use: Certificate | None = None) -> Iterator[Expiring]:
    """All that stands in the kubeconfig, or in the files that it names; of client certificates the one in use."""
    if kubeconfig.certificate is not None:
        material = kubeconfig.certificate
        ends = _first_end(material) if in_use is None else in_use.ends
        yield Expiring(CLIENT, "the client certificate", ends, renewed=bool(material.path))
    if kubeconfig.authority is not None:
        yield Expiring(AUTHORITY, "the cluster's authority", _first_end(kubeconfig.authority))
    if kubeconfig.token is not None:
        token_ends = _token_end(kubeconfig.token)
        if token_ends is not None:
            yield Expiring(TOKEN, "the token", token_ends, renewed=bool(kubeconfig.token.path))


def server_certificate(endpoint: Endpoint, name: str) -> Expiring:
    """What that server shows to anybody. It is only looked at: what the agent sends, it sends to whom it trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    ends: datetime | NotKnown
    try:
        sock = socket.create_connection((endpoint.host, endpoint.port), CONNECT_SECONDS)
        with sock, context.wrap_socket(sock, server_hostname=name or endpoint.host) as tls:
            ends = expiry(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True) or b""))
    except (OSError, ValueError) as error:
        ends = NotKnown(str(error), "Is that server up, and can it be reached from here?")
    return Expiring(SERVER, f"the certificate of {endpoint.url}", ends)


def _first_end(material: Material) -> datetime | NotKnown:
    """Of several certificates in one file, the earliest end."""
    try:
        text = material.read().decode("ascii", "ignore")
        parts = [part + ssl.PEM_FOOTER for part in text.split(ssl.PEM_FOOTER)[:-1]]
        return min(map(expiry, parts or [text]))
    except (UserError, ValueError) as error:
        return NotKnown(f"{material.path or material.place}: {error}", "See: pp-leader enroll NODE")


def _token_end(material: Material) -> datetime | None:
    """Where the token is a JWT with an end; it is not for us to verify."""
    try:
        payload = material.read().split(b".")[1]
        ends = json.loads(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))["exp"]
        return datetime.fromtimestamp(ends, timezone.utc)
    except (UserError, ValueError, LookupError, TypeError, OverflowError, OSError):
        return None
