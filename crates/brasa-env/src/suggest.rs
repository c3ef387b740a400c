//! What a user probably meant by a word that is unknown.

/// Similarity from which two words are taken for one with a typing error.
const SIMILAR: f64 = 0.85;

/// The known word that is nearest to `word`: its initials (`lr` for `learning_rate`), one that contains it, or one with other letters.
///
/// ```
/// use brasa_env::suggest;
///
/// let known = || ["learning_rate", "gamma", "n_steps"].into_iter();
/// assert_eq!(suggest::nearest("gama", known()), Some("gamma"));
/// assert_eq!(suggest::nearest("lr", known()), Some("learning_rate"));
/// assert_eq!(suggest::nearest("colors", known()), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let score = |known: &str| {
        let initials: String = known.split(['_', '-']).filter_map(|part| part.chars().next()).collect();
        match known {
            _ if word.len() > 1 && initials == word => 2.0,
            _ if word.len() > 2 && known.split(['_', '-']).any(|part| part == word) => 1.5,
            _ if word.len() > 2 && known.contains(&word) => 1.0 + 1.0 / known.len() as f64,
            _ => strsim::jaro_winkler(&word, known),
        }
    };
    let scored = known.map(|known| (score(known), known)).filter(|(score, _)| *score >= SIMILAR);
    // The first of equals.
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}

/// Whether two words differ by a typing error at most.
///
/// ```
/// use brasa_env::suggest;
///
/// assert!(suggest::is_similar("gama", "gamma"));
/// assert!(!suggest::is_similar("tau", "gamma"));
/// ```
pub fn is_similar(a: &str, b: &str) -> bool {
    strsim::jaro_winkler(a, b) >= SIMILAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_typing_are_found_and_other_words_are_not() {
        let known = ["capacity", "efficiency", "nominal_power", "loss_coefficient", "depth_of_discharge"];
        for (word, meant) in [
            ("efficency", Some("efficiency")),
            ("Efficiency", Some("efficiency")),
            ("nominal_pwr", Some("nominal_power")),
            ("depth", Some("depth_of_discharge")),
            ("note", None),
            ("model", None),
            ("description", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
        assert!(is_similar("battery", "batery") && !is_similar("battery", "hall"));
    }
}
