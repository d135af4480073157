"""Certificates for webhooks: a CA that signs one certificate and is then forgotten, so nothing of it can be stolen."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCKS_APART = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class ServingCertificate:
    """A key, its certificate, and the CA that vouches for it, each as PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


def make_certificate(names: Sequence[str], lasts: dt.timedelta) -> ServingCertificate:
    """Make a certificate for names and addresses, with a CA of its own, whose key is not kept."""
    now = dt.datetime.now(dt.UTC)
    life = (now - CLOCKS_APART, now + lasts)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name(f"Tenure webhooks {now:%Y-%m-%d %H:%M:%S}")
    authority = (
        _begun(issuer, issuer, authority_key.public_key(), life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _begun(_name(names[0]), issuer, key.public_key(), life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ServingCertificate(_pem(certificate), private, _pem(authority))


def check(certificate: bytes, key: bytes, authorities: bytes) -> None:
    """Raise ``ValueError`` unless these are a certificate, its own key, and CAs of which one has signed it."""
    try:
        read = x509.load_pem_x509_certificate(certificate)
        public = serialization.load_pem_private_key(key, None).public_key()
        known = x509.load_pem_x509_certificates(authorities)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"neither a certificate nor its key: {error}") from error
    if read.public_key() != public:
        raise ValueError("the key is not that of the certificate")
    if not any(_has_signed(authority, read) for authority in known):
        raise ValueError("none of the CAs has signed the certificate")


def expiry_of(certificate: bytes) -> dt.datetime:
    """Return when a certificate expires."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def names_of(certificate: bytes) -> set[str]:
    """Return the names and addresses a certificate is for."""
    read = x509.load_pem_x509_certificate(certificate)
    try:
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return set()
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return {*names.get_values_for_type(x509.DNSName), *addresses}


def certificate_name(host: str) -> str:
    """Return a host as certificates name it: an address in its one spelling, a name in ASCII and small letters.

    Raise ``ValueError`` for a host that no certificate can name.
    """
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))  # a certificate has no place for a zone
    except ValueError:
        pass
    name = host.rstrip(".").lower()
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"no certificate can be for {host!r}: {error}") from error


def unexpired(authorities: bytes, now: dt.datetime) -> bytes:
    """Return those of several CAs that have not expired, each once; of what cannot be read, nothing."""
    try:
        read = x509.load_pem_x509_certificates(authorities) if authorities.strip() else []
    except ValueError:
        return b""
    return b"".join(dict.fromkeys(_pem(each) for each in read if each.not_valid_after_utc > now))


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    life: tuple[dt.datetime, dt.datetime],
) -> x509.CertificateBuilder:
    begin, end = life
    return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), begin, end)


def _name(text: str) -> x509.Name:
    # X.509 has 64 characters for a common name; the alternative names have the whole of it.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
