//! Rules for the text of pages: words, openings, spelling, length of sentences and cells.

use super::Finding;
use super::markdown::{Block, Kind, Page};

/// Largest number of words of a sentence, with the words of quoted code.
const MAX_SENTENCE: usize = 35;
/// Largest number of words of a cell of a table. Quoted code is not counted.
const MAX_CELL: usize = 12;

/// Words that pages avoid, with their inflections, and what to write. `docs/explanation/style.md` has the reasons.
const WORDS: [(&str, &str); 42] = [
    ("those of", "repeat the noun"),
    ("that of", "repeat the noun"),
    ("beside", "next to, and, or while X also runs"),
    ("anew", "again, or from the start"),
    ("at hand", "available"),
    ("nobody", "no user, or no process"),
    ("somebody|someone", "a user, or a person"),
    ("whoever", "the caller, or everyone who"),
    ("says|said", "prints, contains or specifies"),
    ("tells|told", "prints or estimates"),
    ("knows", "receives, observes or depends on"),
    ("asks|asked", "requires or requests"),
    ("refuse|refuses|refused|refusal", "rejects, or returns an error"),
    ("forgives|forgive", "ignores"),
    ("one's own", "your, or custom"),
    ("of its own|of your own|of their own|of our own", "separate, or custom"),
    ("likewise", "repeat the statement"),
    ("in turns", "alternately"),
    ("elsewhere", "on other devices, or in other libraries"),
    ("absent", "missing, or not supported"),
    ("plays|played", "runs, or evaluates"),
    ("figure|figures", "metric, result or number"),
    ("moments", "running mean and variance"),
    ("product|products", "matrix multiplication"),
    ("draw|draws|drawn|drew", "sample"),
    ("folder|folders", "directory"),
    ("share of the way", "normalized return"),
    ("whatever", "for any, or regardless of"),
    ("beyond", "above, outside, or more than"),
    ("homes", "buildings"),
    ("by hand", "analytic, or manually"),
    ("ours|theirs", "Brasa, or the name of the library"),
    ("so that", "a new sentence"),
    ("on the way", "during"),
    ("simply|easily|obviously|of course", "leave the word out"),
    ("powerful|seamless|seamlessly|blazing", "a measured number"),
    ("please", "leave the word out"),
    ("in order to", "to"),
    ("hyper-parameter|hyper-parameters", "hyperparameter"),
    ("rejected by name|rejects it by name|error by name", "with an error that names X"),
    ("what is absent", "limitations"),
    ("utilize|utilizes|leverage|leverages", "use"),
];

/// Words with a meaning of their field only after another word: the word, the word before it, what to write.
const ONLY_AFTER: [(&str, &str); 2] = [("launch", "kernel"), ("launches", "kernel")];

/// Beginnings of sentences that hide the subject.
const OPENINGS: [&str; 7] =
    ["of the", "note that", "keep in mind", "it should be", "it is important", "as you can see", "what is more"];

/// British spellings: the beginning of a word, and its American form.
const SPELLINGS: [(&str, &str); 24] = [
    ("licence", "license"),
    ("programme", "program"),
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("neighbour", "neighbor"),
    ("favour", "favor"),
    ("centre", "center"),
    ("metre", "meter"),
    ("kilometre", "kilometer"),
    ("modelled", "modeled"),
    ("modelling", "modeling"),
    ("labelled", "labeled"),
    ("travelled", "traveled"),
    ("cancelled", "canceled"),
    ("normalis", "normaliz"),
    ("initialis", "initializ"),
    ("optimis", "optimiz"),
    ("organis", "organiz"),
    ("recognis", "recogniz"),
    ("summaris", "summariz"),
    ("analyse", "analyze"),
    ("catalogue", "catalog"),
    ("artefact", "artifact"),
    ("grey", "gray"),
];

/// Checks the text of a page whose path from the root is `name`.
pub fn check_prose(name: &str, page: &Page) -> Vec<Finding> {
    let mut findings = Vec::new();
    for block in &page.blocks {
        let text = block.text.to_ascii_lowercase();
        let mut add = |offset: usize, rule: &'static str, message: String| {
            findings.push(Finding { file: name.to_owned(), line: block.line_at(offset), rule, message });
        };
        for (at, word, instead) in words(&text) {
            add(at, "word", format!("`{word}`: write {instead}"));
        }
        for (at, found, instead) in spellings(&text) {
            add(at, "spelling", format!("`{found}`: write `{instead}`"));
        }
        for (at, message) in lengths(block) {
            add(at, "length", message);
        }
        for (at, opening) in openings(&text) {
            add(at, "opening", format!("a sentence begins with `{opening}`: begin with the subject"));
        }
    }
    findings
}

/// British spellings in a text of lower case, with their offsets and American forms.
pub fn spellings(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let at_start = |word| whole_words(text, word, false);
    SPELLINGS.iter().flat_map(|(word, instead)| at_start(word).map(move |at| (at, *word, *instead))).collect()
}

/// Words to avoid in a text of lower case, with their offsets and what to write.
pub fn words(text: &str) -> Vec<(usize, &'static str, String)> {
    let mut found = Vec::new();
    for (forms, instead) in WORDS {
        for word in forms.split('|') {
            found.extend(whole_words(text, word, true).map(|at| (at, word, instead.to_owned())));
        }
    }
    for (word, before) in ONLY_AFTER {
        let alone = whole_words(text, word, true).filter(|at| !text[..*at].trim_end().ends_with(before));
        found.extend(alone.map(|at| (at, word, format!("`{before} {word}`"))));
    }
    // "The same" needs its noun.
    let alone = whole_words(text, "the same", true).filter(|at| {
        let rest = text[at + "the same".len()..].trim_start();
        rest.is_empty() || rest.starts_with(['.', ',', ';', ':', ')'])
    });
    found.extend(alone.map(|at| (at, "the same", "the noun".to_owned())));
    found
}

/// Openings of sentences to avoid, with their offsets.
fn openings(text: &str) -> Vec<(usize, &'static str)> {
    let begins = |sentence: &str, opening: &str| {
        sentence.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let opening = |sentence: &str| OPENINGS.into_iter().find(|opening| begins(sentence, opening));
    sentences(text).into_iter().filter_map(|(at, sentence)| Some((at, opening(sentence)?))).collect()
}

/// Sentences or cells that are too long, with their offsets.
fn lengths(block: &Block) -> Vec<(usize, String)> {
    if block.kind == Kind::Cell {
        let n = block.text.split_whitespace().filter(|token| token.contains(char::is_alphanumeric)).count();
        let message = format!("a cell of {n} words, at most {MAX_CELL}: use a list, or split the table");
        return if n > MAX_CELL { vec![(0, message)] } else { Vec::new() };
    }
    let count = |sentence: &str| {
        sentence.split_whitespace().filter(|token| token.contains(|c: char| c.is_alphanumeric() || c == '`')).count()
    };
    let counted = sentences(&block.text).into_iter().map(|(at, sentence)| (at, count(sentence)));
    let long = counted.filter(|(_, n)| *n > MAX_SENTENCE);
    long.map(|(at, n)| (at, format!("a sentence of {n} words, at most {MAX_SENTENCE}: one thought per sentence")))
        .collect()
}

/// Sentences with their offsets.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '!', '?']) {
        let after = text[at + 1..].trim_start_matches(['*', ')', '"', '\'', ']', '_']);
        if (after.is_empty() || after.starts_with(' ')) && !abbreviated(&text[..at]) {
            found.push((start, &text[start..text.len() - after.len()]));
            start = text.len() - after.trim_start().len();
        }
    }
    found.push((start, &text[start..]));
    found
        .into_iter()
        .map(|(at, sentence)| (at + sentence.len() - sentence.trim_start().len(), sentence.trim()))
        .collect()
}

/// Whether a period after this text ends an abbreviation.
fn abbreviated(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    ["al", "e.g", "i.e", "vs", "cf"].contains(&word)
}

/// Offsets of `word` that begin, and if `end` also end, at the boundary of a word.
fn whole_words<'a>(text: &'a str, word: &'a str, end: bool) -> impl Iterator<Item = usize> + 'a {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !(text[..*at].ends_with(inside) || end && text[at + word.len()..].starts_with(inside)))
}

#[cfg(test)]
mod tests {
    use super::super::markdown::parse;
    use super::*;

    /// Findings of a page, as (line, rule).
    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        check_prose("docs/x.md", &parse(text)).into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn words_to_avoid_are_found_as_whole_words() {
        assert_eq!(rules("A table is\nbeside a chart.\n"), [(2, "word")]);
        for fine in
            ["Besides, it runs.", "The `beside` key.", "A [page](beside.md).", "The kernel launch.", "Folderless."]
        {
            assert_eq!(rules(fine), [], "{fine}");
        }
        for word in
            ["Whoever runs it.", "It has one launch.", "| 3 | one's own |", "# Those of others", "It was Refused."]
        {
            assert_eq!(rules(word).len(), 1, "{word}");
        }
    }

    #[test]
    fn the_same_needs_a_noun() {
        assert_eq!(rules("Both have the same weights.\n"), []);
        assert_eq!(rules("The weights are the same.\n| a | the same |\n"), [(1, "word"), (2, "word")]);
    }

    #[test]
    fn spelling_is_american() {
        assert_eq!(rules("The licences of a programmer's colour.\n").len(), 3);
        assert_eq!(rules("The license of parametrized, normalized values.\n"), []);
    }

    #[test]
    fn sentences_are_short() {
        let sentence = |n: usize| "word ".repeat(n - 1) + "word.";
        assert_eq!(rules(&sentence(35)), []);
        assert_eq!(rules(&(sentence(35) + "\n" + &sentence(36))), [(2, "length")]);
        // Words of code count, and a list has one sentence per item at least.
        assert_eq!(rules(&format!("`a b` {}\n", sentence(33))), []);
        assert_eq!(rules(&format!("`a b c` {}\n", sentence(33))), [(1, "length")]);
        assert_eq!(rules("- a\n".repeat(40).as_str()), []);
        assert_eq!(rules(&format!("Schulman et al. {}\n", sentence(33))), [(1, "length")]);
    }

    #[test]
    fn cells_are_short() {
        let row = |n: usize| format!("| a | {} |\n", "word ".repeat(n));
        assert_eq!(rules(&row(12)), []);
        assert_eq!(rules(&row(13)), [(1, "length")]);
        assert_eq!(rules(&format!("| `{}` |\n", "word ".repeat(20))), []);
    }

    #[test]
    fn sentences_begin_with_their_subject() {
        assert_eq!(rules("It runs. Note that it ends.\n"), [(1, "opening")]);
        assert_eq!(rules("Notes of the run.\n"), []);
    }
}
