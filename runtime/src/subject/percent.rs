//! Percent-encoding of whole texts, which can be taken back.

use tallygate_rules::is_plain;

/// Encodes every byte that does not stand for itself within a key.
pub(crate) fn percent_encode(text: &str) -> String {
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// Returns the text that is encoded so, or `None` if none is.
pub(crate) fn percent_decode(encoded: &str) -> Option<String> {
    let mut bytes = encoded.bytes();
    let mut text = Vec::with_capacity(encoded.len());
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            plain if is_plain(plain) => plain,
            _ => return None,
        });
    }
    String::from_utf8(text).ok()
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_taken_back() {
        for text in ["", "sms.send", "a::b", "50 %", "é\n=:!"] {
            let encoded = percent_encode(text);
            assert!(encoded.bytes().all(|byte| is_plain(byte) || byte == b'%'), "{encoded}");
            assert_eq!(percent_decode(&encoded).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_was_not_encoded_is_refused() {
        for text in ["a:b", "a b", "%", "%4", "%4g", "%4a", "%FF", "a!b"] {
            assert_eq!(percent_decode(text), None, "{text}");
        }
    }
}
