//! The known word that is nearest to a mistyped one.

/// The candidate that takes the fewest changes of letters to become `word`, if that is at most a third of the word.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, near) = candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= word.chars().count().max(3)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_what_is_near_is_named() {
        let verbs = ["explain", "doctor", "audit"];
        assert_eq!(nearest("docter", verbs), Some("doctor"));
        assert_eq!(nearest("explian", verbs), Some("explain"));
        assert_eq!(nearest("kernels", verbs), None);
        assert_eq!(nearest("x", verbs), None);
        assert_eq!(nearest("audit", []), None);
    }
}
