//! The table of controllers on the page of a run.

use brasa_env::BaselineKind;

use super::page::escape;
use crate::comparison::{Comparison, Row, beside, beside_text, number, races};

/// Controllers next to each other on a page of paper.
const PAPER_COLUMNS: usize = 4;
/// The sentence about the mark of [`html_table`].
pub(super) const MARKED: &str =
    "Color marks the best value of each row among policies and rules; equal values are all marked.";

/// The table: the policy, the best rule, the optimum and the bound first; the others can be folded. For print, the same columns in parts
/// that fit a page.
pub(super) fn html_table(comparison: &Comparison) -> String {
    let (first, others) = ordered(&comparison.rows);
    let rows: Vec<&Row> = first.iter().chain(&others).copied().collect();
    let parts: String = rows.chunks(PAPER_COLUMNS).map(|part| table(comparison, part, part.len())).collect();
    boxed("result", &table(comparison, &rows, first.len()), &parts)
}

/// A table in a box that scrolls, with `print` instead of it on paper.
pub(crate) fn boxed(name: &str, table: &str, print: &str) -> String {
    let name = escape(name);
    let label = format!("role=\"region\" aria-label=\"Table: {name}\"");
    let screen = if print.is_empty() { "scroll" } else { "scroll screen" };
    let print = if print.is_empty() { String::new() } else { format!("<div class=\"print\">{print}</div>") };
    format!("<div class=\"table\" data-name=\"{name}\"><div class=\"{screen}\" {label}>{table}</div>{print}</div>")
}

/// The rows that everyone reads, and the others.
fn ordered(rows: &[Row]) -> (Vec<&Row>, Vec<&Row>) {
    let of_kind = |kind: BaselineKind| rows.iter().filter(move |row| row.kind == Some(kind));
    let mean = |row: &&Row| row.episode_return.map_or(f64::NEG_INFINITY, |(mean, _)| mean);
    let best = |kind| of_kind(kind).reduce(|best, row| if mean(&row) > mean(&best) { row } else { best });
    let mut first: Vec<&Row> = rows.iter().filter(|row| row.kind.is_none()).collect();
    first.extend(best(BaselineKind::Heuristic));
    first.extend(of_kind(BaselineKind::Optimum));
    // A plan is the upper reference where no optimum is known.
    if of_kind(BaselineKind::Optimum).next().is_none() {
        first.extend(best(BaselineKind::Plan));
    }
    first.extend(of_kind(BaselineKind::Bound));
    let is_first = |row: &&Row| first.iter().any(|other| std::ptr::eq(*other, *row));
    let others: Vec<&Row> = rows.iter().filter(|row| !is_first(row)).collect();
    (first, others)
}

/// A table of `rows`; columns from `n_first` on are those that fold.
fn table(comparison: &Comparison, rows: &[&Row], n_first: usize) -> String {
    let class = |column: usize, is_best: bool| match (column >= n_first, is_best) {
        (true, true) => " class=\"more best\"",
        (true, false) => " class=\"more\"",
        (false, true) => " class=\"best\"",
        (false, false) => "",
    };
    let mut html = String::from("<table><thead><tr><th scope=\"col\">controller</th>");
    for (column, row) in rows.iter().enumerate() {
        let kind = row.kind.map(|kind| format!("<small>{}</small>", kind.name())).unwrap_or_default();
        html.push_str(&format!("<th scope=\"col\"{}>{}{kind}</th>", class(column, false), escape(&row.name)));
    }
    html.push_str("</tr></thead><tbody>");
    let line = |label: &str, texts: &[String]| {
        let cells: String =
            texts.iter().enumerate().map(|(i, text)| format!("<td{}>{text}</td>", class(i, false))).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(label.trim()))
    };
    let returns: Vec<String> =
        rows.iter().map(|row| row.episode_return.map(|(mean, _)| number(mean)).unwrap_or_default()).collect();
    html.push_str(&line("return", &returns));
    for (label, texts) in comparison.return_lines(rows) {
        html.push_str(&line(label, &texts));
    }
    for (i, figure) in comparison.figures.iter().enumerate() {
        let best = comparison.best(i).map(number);
        let beside = beside(&comparison.rows, i);
        html.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(&figure.label)));
        for (column, row) in rows.iter().enumerate() {
            let cell = &row.cells[i];
            let value = cell.value.map(number).unwrap_or_default();
            let ratio = beside_text(beside, cell).map(|text| format!("<small>{text}</small>")).unwrap_or_default();
            // Values that read alike are alike: a tie has all marks.
            let is_best = races(row) && best.is_some() && cell.score().map(number) == best;
            let mark = if is_best { "<span class=\"sr\">best</span>" } else { "" };
            html.push_str(&format!("<td{}>{mark}{value}{ratio}</td>", class(column, is_best)));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

#[cfg(test)]
mod tests {
    use brasa_env::{Figure, Measured, Outcome};

    use super::*;
    use crate::comparison::{ControllerOutcomes, TRAINED, row};

    fn comparison(of: &[(&str, Option<BaselineKind>, f64, f64)]) -> Comparison {
        let outcome = |episode_return: f64, cost: f64| Outcome {
            episode_return: Some(episode_return),
            figures: vec![Measured::new(cost)],
            ..Outcome::default()
        };
        let all: Vec<ControllerOutcomes> = of
            .iter()
            .map(|(name, kind, value, cost)| ControllerOutcomes {
                name: (*name).into(),
                kind: *kind,
                outcomes: vec![outcome(*value, *cost)],
            })
            .collect();
        let figures = vec![Figure::new("cost", "cost").less_is_better()];
        let rows = all.iter().map(|one| row(&figures, &all, one)).collect();
        Comparison { figures, rows, note: String::new(), exposure: None, changed_files: Vec::new() }
    }

    const ALL: [(&str, Option<BaselineKind>, f64, f64); 6] = [
        ("idle", Some(BaselineKind::Idle), 0.0, 2.0),
        ("worse", Some(BaselineKind::Heuristic), 1.0, 3.0),
        ("better", Some(BaselineKind::Heuristic), 2.0, 2.0001),
        ("bound", Some(BaselineKind::Bound), 9.0, 1.0),
        ("optimum", Some(BaselineKind::Optimum), 8.0, 1.0),
        (TRAINED, None, 3.0, 2.0),
    ];

    #[test]
    fn the_policy_the_best_rule_the_optimum_and_the_bound_come_first() {
        let comparison = comparison(&ALL);
        let (first, others) = ordered(&comparison.rows);
        let names = |rows: &[&Row]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&first), [TRAINED, "better", "optimum", "bound"]);
        assert_eq!(names(&others), ["idle", "worse"]);
        let html = html_table(&comparison);
        assert_eq!(html.matches("<th scope=\"col\" class=\"more\">").count(), 2, "{html}");
        // On paper, no more columns than fit, and every controller once.
        let (_, print) = html.split_once("class=\"print\"").expect("there is a form for print");
        assert_eq!(print.matches("<table>").count(), 2);
        for (name, ..) in ALL {
            assert_eq!(print.matches(&format!("\"col\">{name}<")).count(), 1, "{name}");
        }
    }

    #[test]
    fn ties_are_all_marked_and_doing_nothing_earns_no_mark() {
        let screen = |of: &[(&str, Option<BaselineKind>, f64, f64)]| {
            let html = html_table(&comparison(of));
            html.split_once("class=\"print\"").expect("there is a form for print").0.to_owned()
        };
        let html = screen(&ALL);
        assert_eq!(html.matches("best\"><span class=\"sr\">best</span>2.000").count(), 2, "{html}");
        assert_eq!(html.matches("class=\"sr\"").count(), 2, "{html}");
        // Where doing nothing is better than all, nobody is marked.
        let mut idle_is_better = ALL;
        idle_is_better[0].3 = 0.5;
        assert!(!screen(&idle_is_better).contains("class=\"sr\""));
    }
}
