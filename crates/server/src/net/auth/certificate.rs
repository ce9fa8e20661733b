//! What REQUIRE X509, SUBJECT, ISSUER and CIPHER demand of a client's TLS session.
//!
//! The TLS layer has checked the certificate against the authorities of `ssl_ca`; without them no
//! client presents one. Here its two names are read.

use nfold_catalog::CertificateRule;
use rustls::{CipherSuite, ServerConnection};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The tag of the version, which the first certificates do not have.
const VERSION: u8 = 0xa0;

/// The members of names that have a short name: object identifier (DER) and OpenSSL's short name.
const SHORT_NAMES: [(&[u8], &str); 14] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
        "emailAddress",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "UID",
    ),
];

/// Whether a client's TLS session is what an account requires.
pub(crate) fn satisfies(tls: &ServerConnection, rule: &CertificateRule) -> bool {
    if let Some(cipher) = &rule.cipher
        && tls
            .negotiated_cipher_suite()
            .and_then(|s| openssl_name(s.suite()))
            != Some(&**cipher)
    {
        return false;
    }
    let any = CertificateRule::default();
    if rule.subject.is_none() && rule.issuer.is_none() && *rule != any {
        return true;
    }
    let certificate = tls.peer_certificates().and_then(|chain| chain.first());
    let Some((issuer, subject)) = certificate.and_then(|c| names(c)) else {
        return false;
    };
    let is = |wanted: &Option<Box<str>>, name: &str| wanted.as_deref().is_none_or(|w| w == name);
    is(&rule.issuer, &issuer) && is(&rule.subject, &subject)
}

/// OpenSSL's name of a cipher suite.
fn openssl_name(suite: CipherSuite) -> Option<&'static str> {
    Some(match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            "ECDHE-ECDSA-CHACHA20-POLY1305"
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => return None,
    })
}

/// Issuer and subject of a certificate (DER), as OpenSSL's `X509_NAME_oneline` writes them. `None`
/// if it is malformed.
fn names(der: &[u8]) -> Option<(String, String)> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = any_element(fields)?.2;
    }
    let after_serial = any_element(fields)?.2;
    let after_algorithm = any_element(after_serial)?.2;
    let (issuer, after_issuer) = element(after_algorithm, SEQUENCE)?;
    let after_validity = any_element(after_issuer)?.2;
    let (subject, _) = element(after_validity, SEQUENCE)?;
    Some((one_line(issuer)?, one_line(subject)?))
}

/// A name: a sequence of sets of pairs of object identifier and text.
fn one_line(mut name: &[u8]) -> Option<String> {
    let mut out = String::new();
    while !name.is_empty() {
        let (mut set, rest) = element(name, SET)?;
        name = rest;
        while !set.is_empty() {
            let (pair, others) = element(set, SEQUENCE)?;
            set = others;
            let (id, text) = element(pair, OBJECT_IDENTIFIER)?;
            let (_, text, _) = any_element(text)?;
            out.push('/');
            match SHORT_NAMES.iter().find(|(known, _)| *known == id) {
                Some((_, short)) => out.push_str(short),
                None => out.push_str(&dotted(id)),
            }
            out.push('=');
            for &byte in text {
                match byte {
                    b' '..=b'~' => out.push(byte.into()),
                    _ => out.push_str(&format!("\\x{byte:02X}")),
                }
            }
        }
    }
    Some(out)
}

/// An object identifier as numbers with points between them.
fn dotted(id: &[u8]) -> String {
    let mut parts = Vec::new();
    let mut number = 0_u64;
    for &byte in id {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if parts.is_empty() {
            let first = (number / 40).min(2);
            parts.push(first);
            number -= first * 40;
        }
        parts.push(number);
        number = 0;
    }
    let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
    parts.join(".")
}

/// The content of the first element, which has this tag, and the bytes behind it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any_element(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag and content of the first element, and the bytes behind it.
fn any_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let size = usize::from(first & 0x7f);
        if size == 0 || size > 4 || rest.len() < size {
            return None;
        }
        let (bytes, behind) = rest.split_at(size);
        length = bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b));
        rest = behind;
    }
    (length <= rest.len()).then(|| {
        let (content, behind) = rest.split_at(length);
        (tag, content, behind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_openssl_writes_them() {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let mut name = rcgen::DistinguishedName::new();
        name.push(rcgen::DnType::CountryName, "SE");
        name.push(rcgen::DnType::OrganizationName, "A \u{e9}");
        name.push(
            rcgen::DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 311, 60]),
            "x",
        );
        name.push(rcgen::DnType::CommonName, "client");
        parameters.distinguished_name = name;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let line = "/C=SE/O=A \\xC3\\xA9/1.3.6.1.4.1.311.60=x/CN=client".to_string();
        assert_eq!(names(certificate.der()), Some((line.clone(), line)));
        for cut in 0..200 {
            assert_eq!(names(&certificate.der()[..cut]), None, "cut at {cut}");
        }
    }
}
