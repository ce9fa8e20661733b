//! Base64, as mysqlbinlog prints events.

/// The bytes of a text, in which white space may stand anywhere. `None`: it is no base64.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut digits, mut padding) = (0u32, 0, 0);
    for &byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if digits >= 2 => {
                padding += 1;
                0
            }
            _ => return None,
        };
        if padding > 0 && byte != b'=' {
            return None;
        }
        group = group << 6 | u32::from(value);
        digits += 1;
        if digits == 4 {
            let bytes = group.to_be_bytes();
            out.extend_from_slice(&bytes[1..4 - padding]);
            (group, digits) = (0, 0);
            if padding > 0 {
                // Another text may follow the padding of the one before.
                padding = 0;
            }
        }
    }
    (digits == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_decoded_with_white_space_and_padding() {
        assert_eq!(decode(b" Zm9v\nYmFy ").as_deref(), Some(&b"foobar"[..]));
        assert_eq!(decode(b"Zm8=").as_deref(), Some(&b"fo"[..]));
        assert_eq!(decode(b"Zg==").as_deref(), Some(&b"f"[..]));
        assert_eq!(decode(b"").as_deref(), Some(&b""[..]));
        for bad in ["x", "Zm9", "Zm9!", "=AAA", "Z=9v", "Zm=v"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
