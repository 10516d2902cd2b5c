//! Patterns of paths in cuinstr.toml.

/// Whether a path with forward slashes matches a pattern.
///
/// `?` is one byte and `*` any number of them, both without `/`; `**` is any number of bytes, and `**/` may also be nothing.
/// A pattern that matches a folder matches all that is in it.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern).as_bytes();
    let path = path.strip_prefix("./").unwrap_or(path).as_bytes();
    // `reached[i]`: the pattern so far can end after `i` bytes of the path. No backtracking, so no pattern is slow.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    let mut rest = pattern;
    while let Some(&first) = rest.first() {
        let mut next = vec![false; path.len() + 1];
        if rest.starts_with(b"**") {
            let folders = rest.get(2) == Some(&b'/');
            let mut open = false;
            for i in 0..=path.len() {
                // `**/` stops behind a slash, or where it began.
                next[i] = reached[i] || open && (!folders || path[i - 1] == b'/');
                open |= reached[i];
            }
            rest = &rest[if folders { 3 } else { 2 }..];
        } else {
            let mut open = false;
            for i in 0..=path.len() {
                let here = i > 0 && path[i - 1] != b'/';
                match first {
                    b'*' => {
                        open = reached[i] || open && here;
                        next[i] = open;
                    }
                    b'?' => next[i] = here && reached[i - 1],
                    _ => next[i] = i > 0 && path[i - 1] == first && reached[i - 1],
                }
            }
            rest = &rest[1..];
        }
        reached = next;
    }
    !pattern.is_empty() && (0..=path.len()).any(|i| reached[i] && (i == path.len() || path[i] == b'/'))
}

/// What a sound pattern is called in messages.
pub(super) const KIND: &str = "pattern of paths: only `?`, `*` and `**` stand for others";

/// Whether all of the pattern is understood: no brackets, braces or backslashes, which other tools' patterns know.
pub(super) fn is_sound(text: &str) -> bool {
    !text.trim().is_empty() && !text.starts_with('!') && !text.contains(['[', ']', '{', '}', '\\'])
}

/// Whether the pattern can match more than the one path that it spells.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_gitignore() {
        for (pattern, path, expected) in [
            ("a.cu", "a.cu", true),
            ("a.cu", "b/a.cu", false),
            ("**/a.cu", "a.cu", true),
            ("**/a.cu", "b/c/a.cu", true),
            ("**/a.cu", "b/xa.cu", false),
            ("*.cu", "a.cu", true),
            ("*.cu", "b/a.cu", false),
            ("third_party", "third_party/x/y.cu", true),
            ("third_party/", "third_party/x/y.cu", true),
            ("./third_party/**", "third_party/x/y.cu", true),
            ("third_party", "third_party2/y.cu", false),
            ("src/*/k?.cu", "src/gemm/k1.cu", true),
            ("src/*/k?.cu", "src/gemm/deep/k1.cu", false),
            ("src/**/k.cu", "src/k.cu", true),
            ("", "a.cu", false),
            ("a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }
}
