"""A certificate authority for one test, and a server's certificate for the hosts it names."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def tls_for(hosts: list[str], folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS for these hosts, and the file a client must trust."""
    authority, own = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    root = _certificate("test authority", "test authority", authority, authority, [])
    leaf = _certificate(hosts[0], "test authority", own, authority, hosts)
    folder.mkdir(parents=True, exist_ok=True)
    trusted, chain = folder / "ca.pem", folder / "server.pem"
    trusted.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    key = own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain.write_bytes(key + leaf.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context, trusted


def _certificate(
    subject: str,
    issuer: str,
    own: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    hosts: list[str],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
