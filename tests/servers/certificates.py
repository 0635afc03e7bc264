"""A test certificate authority, and certificates signed by it, as PEM files and as Java keystores."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "keystore"
LIFETIME = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        """Write both as PEM files, and return their paths."""
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        cert.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        key.write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(cert), str(key)

    def write_keystore(self, folder: Path, name: str) -> str:
        """Write both as a PKCS #12 store with `PASSWORD`, and return its path."""
        path = folder / f"{name}.p12"
        encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), self.key, self.certificate, None, encryption)
        )
        return str(path)

    def write_truststore(self, folder: Path, name: str) -> str:
        """Write a PKCS #12 store of Java's that trusts the certificate, with `PASSWORD`; return its path."""
        path = folder / f"{name}.p12"
        trusted = pkcs12.PKCS12Certificate(self.certificate, name.encode())
        encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
        path.write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))
        return str(path)


def authority() -> Signed:
    return _sign("authority", [], None)


def certificate(signer: Signed, *hosts: str) -> Signed:
    """A certificate for names or addresses."""
    return _sign("server", [_general_name(host) for host in hosts], signer)


def _sign(name: str, hosts: list[x509.GeneralName], signer: Signed | None) -> Signed:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFETIME)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return Signed(builder.sign(signer.key if signer else key, hashes.SHA256()), key)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
