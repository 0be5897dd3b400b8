"""Credentials are checked before they are used; what is wrong with them is said with the place and the file."""

from __future__ import annotations

import os
import ssl
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.kube.certificate import Certificate, Subject, expiry, parse_certificate, parse_request
from pp_hostd.kube.credentials import Credentials
from pp_hostd.kube.kubeconfig import KubeconfigError, Material
from pp_hostd.kube.renewing import made_request
from tests.harness.pki import CertificateAuthority, new_key
from tests.kube.credential_files import Files

AUTHORITY = CertificateAuthority("credentials")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, "https://192.0.2.1", AUTHORITY)


def test_a_token_is_one_line_of_ascii(files: Files) -> None:
    for token in ("", "\n", "two words", "two\nlines", "ä", "\x7f", "\ud800"):
        material = Material("kubeconfig: token", data=token.encode("utf-8", "surrogatepass"))
        with pytest.raises(KubeconfigError, match=r"^kubeconfig: token is not a token\n"):
            Credentials(replace(files.kubeconfig, token=material))


@pytest.mark.parametrize("name", ["certificate-authority", "client-certificate", "client-key"])
def test_what_stands_where_a_file_should_is_named(files: Files, name: str) -> None:
    place = files.directory / name
    arrangements: list[tuple[Callable[[Path], None], str]] = [
        (Path.unlink, "does not exist"),
        (Path.mkdir, "is a directory; a regular file is needed"),
        (Path.rmdir, "does not exist"),
        (os.mkfifo, "is a FIFO; a regular file is needed"),
    ]
    for arrange, said in arrangements:
        arrange(place)
        with pytest.raises(KubeconfigError) as caught:
            Credentials(files.kubeconfig)
        assert caught.value.message == f"kubeconfig: {name}: {place}: {said}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("certificate-authority", "is no certificate authority: "),
        ("client-certificate", "holds no PEM certificate"),
        ("client-key", "can't be used with the client certificate: "),
    ],
)
@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"\xff\x00\xff"])
def test_a_file_that_holds_something_else_is_named(files: Files, name: str, said: str, content: bytes) -> None:
    files.write(name, content)
    with pytest.raises(KubeconfigError) as caught:
        Credentials(files.kubeconfig)
    assert caught.value.message.startswith(f"kubeconfig: {name} ({files.directory}/{name}) {said}")


def test_what_stands_between_the_certificates_of_a_bundle_does_not_matter(files: Files) -> None:
    files.write("certificate-authority", "# Főtanúsítvány\n".encode() + AUTHORITY.certificate_pem)
    Credentials(files.kubeconfig)


def test_a_path_that_no_file_can_have_is_named(files: Files) -> None:
    material = Material("kubeconfig: client-key", path="a\0b")
    with pytest.raises(KubeconfigError, match="kubeconfig: client-key: a\0b: can't be read"):
        Credentials(replace(files.kubeconfig, key=material))


def test_an_expired_certificate_is_named_with_its_date_and_the_hosts_clock(files: Files) -> None:
    with freeze_time("2100-01-01"), pytest.raises(KubeconfigError) as caught:
        Credentials(files.kubeconfig)
    ends = expiry((files.directory / "client-certificate").read_text())
    assert caught.value.message.endswith(f": the client certificate expired at {ends:%Y-%m-%d %H:%M:%S}Z")
    assert caught.value.hint.startswith("This host's clock says 2100-01-01 00:00:00Z.")


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password(files: Files) -> None:
    encryption = serialization.BestAvailableEncryption(b"password")
    key = new_key().private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    files.write("client-key", key)
    with pytest.raises(KubeconfigError, match="the key is encrypted, and nobody is there to type its password"):
        Credentials(files.kubeconfig)


@pytest.mark.parametrize("valid_seconds", [7200, 10**9, 2 * 10**10])
def test_the_end_of_validity_is_read_in_both_forms_of_dates(valid_seconds: float) -> None:
    pem = AUTHORITY.issue("worker", valid_seconds=valid_seconds).cert_pem
    assert expiry(pem.decode()) == x509.load_pem_x509_certificate(pem).not_valid_after_utc


@given(st.data())
def test_a_damaged_certificate_is_a_value_error_at_most(data: st.DataObject) -> None:
    der = x509.load_pem_x509_certificate(AUTHORITY.certificate_pem).public_bytes(serialization.Encoding.DER)
    at = data.draw(st.integers(0, len(der) - 1))
    damaged = der[:at] + data.draw(st.binary(max_size=3)) + der[at + data.draw(st.integers(1, 10)) :]
    try:
        assert expiry(ssl.DER_cert_to_PEM_cert(damaged)) <= datetime.max.replace(tzinfo=timezone.utc)
    except ValueError as error:
        assert str(error)


class Renewed:
    """The pair of a kubeconfig, and one that a daemon has renewed since."""

    def __init__(self, files: Files) -> None:
        self.path = files.directory / "client.pem"
        self.kubeconfig = replace(files.kubeconfig, renewed=str(self.path))

    def write(self, user: str = "first", starts_seconds_ago: float = 60, valid_seconds: float = 86400) -> datetime:
        """When it begins."""
        issued = AUTHORITY.issue(user, starts_seconds_ago=starts_seconds_ago, valid_seconds=valid_seconds)
        self.path.write_bytes(issued.cert_pem + issued.key_pem)
        return parse_certificate(issued.cert_pem.decode()).begins

    def used(self) -> Certificate:
        self.credentials = Credentials(self.kubeconfig)
        certificate = self.credentials.current().certificate
        assert certificate is not None
        return certificate


def test_a_renewed_pair_counts_before_the_older_one_of_the_kubeconfig(files: Files) -> None:
    renewed = Renewed(files)
    old = renewed.used().begins
    begins = renewed.write()
    assert renewed.used().begins == begins != old


def test_a_renewed_pair_that_the_signer_dated_back_counts_before_one_that_began_later(files: Files) -> None:
    """Five minutes are more than the whole life of a short one."""
    issued = AUTHORITY.issue("first", valid_seconds=120, starts_seconds_ago=90)
    files.write("client-certificate", issued.cert_pem)
    files.write("client-key", issued.key_pem)
    renewed = Renewed(files)
    begins = renewed.write(starts_seconds_ago=300, valid_seconds=420)
    assert renewed.used().begins == begins


@pytest.mark.parametrize(
    ("user", "validity"),
    [
        ("first", {"starts_seconds_ago": 7200}),  # the host was enrolled once more since
        ("first", {"starts_seconds_ago": 60, "valid_seconds": 30}),  # it has ended
        ("second", {}),  # this host was another node before
    ],
)
def test_the_kubeconfigs_pair_counts_if_it_is_newer_or_alone_of_use(
    files: Files, user: str, validity: dict[str, float]
) -> None:
    renewed = Renewed(files)
    enrolled = renewed.used()
    renewed.write(user, **validity)
    assert renewed.used() == enrolled


@pytest.mark.parametrize("content", [b"", b"half a file"])
def test_a_renewed_pair_that_can_not_be_read_is_told_and_left_alone(files: Files, content: bytes) -> None:
    renewed = Renewed(files)
    enrolled = renewed.used()
    renewed.path.write_bytes(content)
    assert renewed.used() == enrolled
    assert "client.pem) holds no PEM certificate; the certificate of " in renewed.credentials.trouble


def test_an_ended_certificate_is_told_with_the_command_that_gives_another(files: Files) -> None:
    files.rotate("system:node:worker-7")
    with freeze_time("2100-01-01"), pytest.raises(KubeconfigError) as caught:
        Credentials(files.kubeconfig)
    assert "an administrator renews it with `pp-leader enroll worker-7`" in caught.value.hint


@pytest.mark.parametrize("groups", [(), ("one",), ("system:nodes", "pp-hostd:agents")])
async def test_a_request_is_for_the_subject_that_was_named_and_nothing_more(groups: tuple[str, ...]) -> None:
    subject = Subject("system:node:worker-1.example", frozenset(groups))
    made = await made_request(subject)
    read = x509.load_pem_x509_csr(made.request)
    assert read.is_signature_valid
    assert not list(read.extensions)
    assert parse_request(made.request.decode()) == subject


def test_a_request_that_wants_extensions_or_other_names_is_refused() -> None:
    key = new_key()
    name = x509.NameAttribute(x509.NameOID.COMMON_NAME, "system:node:worker-1")
    country = x509.NameAttribute(x509.NameOID.COUNTRY_NAME, "DE")
    plain = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([name]))
    other = x509.SubjectAlternativeName([x509.DNSName("kubernetes")])
    refused = {
        "wants extensions": plain.add_extension(other, critical=False),
        "one user": x509.CertificateSigningRequestBuilder().subject_name(x509.Name([name, country])),
        "user and its groups": x509.CertificateSigningRequestBuilder().subject_name(x509.Name([name, name])),
    }
    for said, builder in refused.items():
        pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
        with pytest.raises(ValueError, match=said):
            parse_request(pem)
    pem = plain.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    assert parse_request(pem).user == "system:node:worker-1"
    with pytest.raises(ValueError, match="not one PEM"):
        parse_request(pem + pem)
