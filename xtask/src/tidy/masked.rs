//! Rust source without the contents of comments and literals.

/// `source` with the bytes of comments and of the contents of string and character literals replaced by spaces.
///
/// Lines and byte offsets are kept, so that they are valid in the source.
pub fn mask(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (from, to, next) = if rest.starts_with(b"//") {
            let end = at + find(rest, b"\n").unwrap_or(rest.len());
            (at, end, end)
        } else if rest.starts_with(b"/*") {
            let end = at + block_comment(rest);
            (at, end, end)
        } else if let Some((open, hashes)) = raw_string(bytes, at) {
            let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
            let start = at + open;
            let end = start + find(&bytes[start..], &close).unwrap_or(bytes.len() - start);
            (start, end, end + close.len())
        } else if rest[0] == b'"' {
            let end = closing_quote(bytes, at + 1, b'"');
            (at + 1, end, end + 1)
        } else if rest[0] == b'\'' && is_character(rest) {
            let end = closing_quote(bytes, at + 1, b'\'');
            (at + 1, end, end + 1)
        } else {
            (at, at, at + 1)
        };
        for byte in &mut out[from..to.min(bytes.len())] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = next;
    }
    // Only complete characters were replaced: all boundaries are at ASCII bytes.
    String::from_utf8_lossy(&out).into_owned()
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// Length of the block comment that `rest` begins with; comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of the opening (`r##"`) and the number of `#`, where a raw string begins at `at`.
fn raw_string(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let word_before = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if bytes[at] != b'r' || (word_before && !matches!(bytes[at - 1], b'b' | b'c')) {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some((hashes + 2, hashes))
}

/// Offset of the quote that ends a literal, or the end of the text.
fn closing_quote(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// Whether the quote at the start of `rest` opens a character, not a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) if byte.is_ascii() => rest.get(2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_lose_their_words() {
        for (source, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"// b\") + g", "f(\"    \") + g"),
            (r#"f("\"b") c"#, r#"f("   ") c"#),
            ("f(r#\"a\"b\"#) c", "f(r#\"   \"#) c"),
            ("fn f<'a>(x: &'a str) { '\"' } // c", "fn f<'a>(x: &'a str) { ' ' }     "),
            ("'\\'' a", "'  ' a"),
            ("\"ñ\" a", "\"  \" a"),
        ] {
            assert_eq!(mask(source), expected, "{source}");
            assert_eq!(mask(source).len(), source.len());
        }
    }

    #[test]
    fn an_open_literal_ends_with_the_text() {
        for source in ["\"abc", "/* abc", "r#\"abc", "'\\", "//"] {
            assert_eq!(mask(source).len(), source.len(), "{source}");
        }
    }
}
