from dpverify.certificate.model import Certificate


def render(certificate: Certificate) -> str:
    return ""
