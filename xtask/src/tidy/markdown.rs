//! The parts of a Markdown page that rules look at: blocks of prose, cells, links, anchors of headings.

/// What a block of prose is.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Kind {
    /// A heading.
    Heading,
    /// A paragraph or an item of a list.
    Text,
    /// A cell of a table.
    Cell,
}

/// A block of prose whose lines are joined by spaces.
#[derive(Debug)]
pub struct Block {
    /// What the block is.
    pub kind: Kind,
    /// The text. Every byte of a word of quoted code is a backtick, and every byte of the target of a link is a space.
    pub text: String,
    /// Offset in the text and number of each line, in order.
    lines: Vec<(usize, usize)>,
}

impl Block {
    /// The line of the page, from 1, at an offset of the text.
    pub fn line_at(&self, offset: usize) -> usize {
        self.lines.iter().take_while(|(start, _)| *start <= offset).last().map_or(1, |(_, line)| *line)
    }
}

/// The target of a link or a picture.
#[derive(Debug, PartialEq)]
pub struct Link {
    /// Line, from 1.
    pub line: usize,
    /// Path, address or `#anchor`, as written.
    pub target: String,
}

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    /// Blocks in order.
    pub blocks: Vec<Block>,
    /// Links and pictures in order.
    pub links: Vec<Link>,
    /// Anchors of headings, as GitHub and mdBook make them.
    pub anchors: Vec<String>,
}

/// Parses a page.
pub fn parse(text: &str) -> Page {
    let mut page = Page::default();
    let mut open: Option<Block> = None;
    let (mut fenced, mut comment) = (false, false);
    for (at, raw) in text.lines().enumerate() {
        let number = at + 1;
        let line = raw.trim();
        let fence = line.starts_with("```");
        comment |= line.starts_with("<!--") && !fenced;
        if fence || fenced || comment || line.is_empty() {
            fenced ^= fence;
            comment &= !line.ends_with("-->");
            page.close(open.take());
        } else if let Some(row) = line.strip_prefix('|') {
            page.close(open.take());
            for cell in cells(row) {
                page.close(Some(block(Kind::Cell, cell.trim(), number)));
            }
        } else if line.starts_with('#') {
            page.close(open.take());
            let heading = line.trim_start_matches('#').trim();
            page.anchors.push(anchor(heading));
            page.close(Some(block(Kind::Heading, heading, number)));
        } else if let Some(item) = item(line) {
            page.close(open.replace(block(Kind::Text, item, number)));
        } else if let Some(block) = &mut open {
            block.text.push(' ');
            block.lines.push((block.text.len(), number));
            block.text.push_str(line);
        } else {
            open = Some(block(Kind::Text, line, number));
        }
    }
    page.close(open);
    page
}

impl Page {
    /// Adds a block as written: blanks its code and the targets of its links, which are kept.
    fn close(&mut self, block: Option<Block>) {
        let Some(mut block) = block else { return };
        let (text, targets) = inline(&block.text);
        self.links.extend(targets.into_iter().map(|(at, target)| Link { line: block.line_at(at), target }));
        block.text = text;
        self.blocks.push(block);
    }
}

fn block(kind: Kind, text: &str, line: usize) -> Block {
    Block { kind, text: text.to_owned(), lines: vec![(0, line)] }
}

/// The text of an item of a list, if the line begins one.
fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if digits.len() < line.len() { digits.strip_prefix(". ") } else { None };
    rest.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* "))
}

/// Cells of a row of a table without its first bar; none if the row only separates the heading.
fn cells(row: &str) -> Vec<&str> {
    let row = row.strip_suffix('|').unwrap_or(row);
    if row.chars().all(|c| matches!(c, '-' | ':' | '|' | ' ')) {
        return Vec::new();
    }
    // Bars in code and after a backslash do not end a cell.
    let blanked = inline(row).0;
    let ends = blanked.match_indices('|').map(|(at, _)| at).chain([row.len()]);
    ends.scan(0, |start, end| Some(&row[std::mem::replace(start, end + 1)..end])).collect()
}

/// A message with its code and its values in braces blanked. Byte offsets are kept.
pub fn blank_code(message: &str) -> String {
    let mut depth = 0;
    let values = message.bytes().map(|byte| {
        depth += i32::from(byte == b'{');
        let blank = depth > 0 && byte.is_ascii();
        depth -= i32::from(byte == b'}');
        if blank { b' ' } else { byte }
    });
    // Only ASCII bytes were replaced.
    let message = String::from_utf8(values.collect()).unwrap_or_default();
    inline(&message).0
}

/// A text with code, targets and tags blanked, and its targets with their offsets. Byte offsets are kept.
fn inline(line: &str) -> (String, Vec<(usize, String)>) {
    let mut out = String::with_capacity(line.len());
    let mut targets = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let (length, fill) = if rest.starts_with('`') {
            (code(rest), Some('`'))
        } else if rest.starts_with("\\|") {
            (2, Some(' '))
        } else if let Some(target) = rest.strip_prefix("](").and_then(|rest| rest.split(')').next()) {
            targets.push((at, target.to_owned()));
            (target.len() + 3, Some(' '))
        } else if let Some(tag) = tag(rest) {
            targets.extend(attributes(tag).map(|target| (at, target)));
            (tag.len(), Some(' '))
        } else {
            (rest.chars().next().map_or(1, char::len_utf8), None)
        };
        let length = length.min(rest.len());
        match fill {
            // Spaces in code stay, so its words can be counted.
            Some(c) => out.extend(rest[..length].bytes().map(|byte| if byte == b' ' { ' ' } else { c })),
            None => out.push_str(&rest[..length]),
        }
        at += length;
    }
    (out, targets)
}

/// Length of the code in backticks at the beginning of `text`, with them.
fn code(text: &str) -> usize {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let (open, rest) = text.split_at(ticks);
    rest.find(open).map_or(ticks, |end| ticks + end + ticks)
}

/// The HTML tag at the beginning of `text`.
fn tag(text: &str) -> Option<&str> {
    let named = text.strip_prefix('<')?.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    text.find('>').filter(|_| named).map(|end| &text[..=end])
}

/// Paths in the attributes of a tag.
fn attributes(tag: &str) -> impl Iterator<Item = String> {
    ["src=\"", "srcset=\"", "href=\""].into_iter().filter_map(|name| {
        let (_, value) = tag.split_once(name)?;
        Some(value.split('"').next()?.to_owned())
    })
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<(Kind, String, usize)> {
        parse(page).blocks.into_iter().map(|block| (block.kind, block.text.clone(), block.line_at(0))).collect()
    }

    #[test]
    fn a_page_has_blocks_and_cells() {
        let page = "# Runs\n\nOne\ntwo.\n- a\n  b\n2. c\n\n| x | y |\n|---|---|\n| 1 | two words |\n";
        let expected = [
            (Kind::Heading, "Runs", 1),
            (Kind::Text, "One two.", 3),
            (Kind::Text, "a b", 5),
            (Kind::Text, "c", 7),
            (Kind::Cell, "x", 9),
            (Kind::Cell, "y", 9),
            (Kind::Cell, "1", 11),
            (Kind::Cell, "two words", 11),
        ];
        assert_eq!(texts(page), expected.map(|(kind, text, line)| (kind, text.to_owned(), line)));
    }

    #[test]
    fn code_is_no_prose() {
        let page = "a `b c` d\n\n```sh\nbeside\n```\n<!-- a\nbeside -->\nend\n";
        let texts: Vec<String> = texts(page).into_iter().map(|(_, text, _)| text).collect();
        assert_eq!(texts, ["a `` `` d", "end"]);
        assert_eq!(parse("a `b\nc` d\n").blocks[0].text, "a `` `` d");
        assert_eq!(parse("| `a | b` | c |\n").blocks.len(), 2);
    }

    #[test]
    fn offsets_lead_to_lines() {
        let block = &parse("one\ntwo [x](y.md) three\nfour\n").blocks[0];
        let line = |word: &str| block.line_at(block.text.find(word).expect("the word is there"));
        assert_eq!((line("one"), line("three"), line("four")), (1, 2, 3));
    }

    #[test]
    fn links_pictures_and_anchors_are_found() {
        let page = "# One's `own`, site\n[a](b.md#c) ![d](e.webp)\n<img src=\"f.webp\" alt=\"g\">\n`[h](i.md)`\n";
        let page = parse(page);
        let targets: Vec<(usize, &str)> = page.links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(targets, [(2, "b.md#c"), (2, "e.webp"), (3, "f.webp")]);
        assert_eq!(page.anchors, ["ones-own-site"]);
    }
}
