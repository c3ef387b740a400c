//! Rules for what a program prints: the text of messages and of the help of commands.

use super::Finding;
use super::markdown::blank_code;
use super::masked::mask;
use super::prose;

/// Crates whose messages avoid the words that pages avoid. In other crates, only the help does.
const COMMAND_CRATES: [&str; 2] = ["crates/brasa-cli/src/", "crates/brasa-experiment/src/"];
/// Derives of items whose documentation comments are the help of a command.
const DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Checks the messages of one Rust file of a library or of the command.
pub fn check_messages(name: &str, text: &str) -> Vec<Finding> {
    if !name.starts_with("crates/") || !name.contains("/src/") {
        return Vec::new();
    }
    let masked = mask(text);
    let end = masked.find("#[cfg(test)]").unwrap_or(masked.len());
    let avoids = COMMAND_CRATES.iter().any(|path| name.starts_with(path));
    let (text, masked) = (&text[..end], &masked[..end]);
    let messages = messages(text, masked).into_iter().map(|(offset, message)| (offset, message, avoids));
    let help = help(text).into_iter().map(|(offset, message)| (offset, message, true));
    let mut findings = Vec::new();
    for (offset, message, avoids) in messages.chain(help) {
        let message = blank_code(message).to_ascii_lowercase();
        let mut add = |at: usize, rule: &'static str, message: String| {
            let line = text[..offset + at].matches('\n').count() + 1;
            findings.push(Finding { file: name.to_owned(), line, rule, message });
        };
        for (at, found, instead) in prose::spellings(&message) {
            add(at, "spelling", format!("`{found}`: write `{instead}`"));
        }
        if avoids {
            for (at, word, instead) in prose::words(&message) {
                add(at, "word", format!("`{word}`: write {instead}"));
            }
        }
    }
    findings
}

/// Literals of three words and more, with their offsets: others are names.
fn messages<'a>(text: &'a str, masked: &str) -> Vec<(usize, &'a str)> {
    let quotes: Vec<usize> = masked.match_indices('"').map(|(at, _)| at).collect();
    let literals = quotes.chunks_exact(2).map(|pair| (pair[0] + 1, &text[pair[0] + 1..pair[1]]));
    literals.filter(|(_, literal)| literal.matches(' ').count() > 1).collect()
}

/// Documentation comments of the arguments of commands, with their offsets.
fn help(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut offset, mut is_argument) = (0, false);
    for line in text.split_inclusive('\n') {
        is_argument |= line.starts_with("#[derive(") && DERIVES.iter().any(|derive| line.contains(derive));
        is_argument &= !line.starts_with('}');
        if let Some(at) = line.find("/// ").filter(|_| is_argument) {
            found.push((offset + at, &line[at..]));
        }
        offset += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(name: &str, text: &str) -> Vec<(usize, &'static str)> {
        check_messages(name, text).into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn messages_have_american_spelling_in_every_crate() {
        let text = "//! The colour.\nconst NAME: &str = \"normalised\";\nconst TEXT: &str = \"the colour is beside it\";\n\
                    #[cfg(test)]\nconst TEST: &str = \"the colour is red\";\n";
        assert_eq!(rules("crates/brasa-energy/src/lib.rs", text), [(3, "spelling")]);
        assert_eq!(rules("crates/brasa-cli/src/main.rs", text), [(3, "spelling"), (3, "word")]);
        assert_eq!(rules("crates/brasa-energy/tests/a.rs", text), []);
    }

    #[test]
    fn code_and_values_in_messages_are_not_prose() {
        let text = "//! Text.\nconst TEXT: &str = \"the key `beside` has {folder} values\";\n";
        assert_eq!(rules("crates/brasa-cli/src/main.rs", text), []);
    }

    #[test]
    fn help_is_checked_in_commands() {
        let text = "//! Text.\n#[derive(Args)]\nstruct A {\n    /// Directory, empty or absent\n    out: u8,\n}\n/// Absent.\nfn out() {}\n";
        assert_eq!(rules("crates/brasa-experiment/src/args.rs", text), [(4, "word")]);
        assert_eq!(rules("crates/brasa-energy/src/plan.rs", &text.replace("Args", "Debug")), []);
    }
}
