//! The text of a CSV file: its heading and its cells, before anything is looked up.
//!
//! All readers of energy scenarios begin here, so that every file is checked alike: the separator is a comma, and no two columns have one name.

use std::path::Path;

use brasa_env::field;
use csv::{ByteRecord, ReaderBuilder};

use crate::EnergyError;

/// A CSV file with unparsed cells.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::delimited::Delimited;
///
/// let table = Delimited::read(Path::new("load.csv"), b"hour,load_kw\n0, 2.5\n1, 3.0\n")?;
/// assert_eq!(table.header, ["hour", "load_kw"]);
/// assert_eq!(table.cell(1, 1), "3.0");
/// assert!(table.cells(0).eq(["0", "1"]));
/// # Ok::<(), brasa_power::EnergyError>(())
/// ```
#[derive(Debug)]
pub struct Delimited {
    /// Names of the columns, trimmed.
    pub header: Vec<String>,
    /// Rows without the heading. A row that is too short is found by the column that it lacks.
    pub records: Vec<ByteRecord>,
}

impl Delimited {
    /// The file `bytes`, which messages call `path`.
    ///
    /// # Errors
    /// [`EnergyError::Schema`] for text that is no CSV, for another separator than the comma, and for two columns of one name.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, EnergyError> {
        let failed = |error: csv::Error| file_error(path, &error.to_string());
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(without_mark(bytes));
        let header: Vec<String> = reader.headers().map_err(failed)?.iter().map(|name| name.trim().to_owned()).collect();
        if let [only] = header.as_slice()
            && let Some((_, name)) = SEPARATORS.iter().find(|(separator, _)| only.contains(*separator))
        {
            let rule = "must be separated by commas, with a point in decimal numbers";
            return Err(file_error(path, &format!("its columns are separated by {name}, but {rule}")));
        }
        for (index, name) in header.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if let Some(first) = header[..index].iter().position(|other| other == name) {
                return Err(given_twice(path, name, (&header, first, index)));
            }
        }
        let records = reader.byte_records().collect::<Result<_, _>>().map_err(failed)?;
        Ok(Self { header, records })
    }

    /// The trimmed text of a cell; empty where the row is too short.
    pub fn cell(&self, row: usize, index: usize) -> String {
        text(&self.records[row], index)
    }

    /// The trimmed texts of a column.
    pub fn cells(&self, index: usize) -> impl Iterator<Item = String> {
        self.records.iter().map(move |record| text(record, index))
    }
}

/// Separators that spreadsheets of many countries write.
const SEPARATORS: [(char, &str); 3] = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")];

/// The error of a column `name` that two columns of `header` stand for.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::delimited::given_twice;
///
/// let header = ["load", "Load (kW)"].map(String::from);
/// let error = given_twice(Path::new("a.csv"), "load_kw", (&header, 0, 1));
/// assert_eq!(error.to_string(), "a.csv: must have `load_kw` once, got column 1 `load` and column 2 `Load (kW)`");
/// ```
pub fn given_twice(path: &Path, name: &str, (header, first, second): (&[String], usize, usize)) -> EnergyError {
    let at = |index: usize| format!("column {} `{}`", index + 1, header[index]);
    file_error(path, &format!("must have `{name}` once, got {} and {}", at(first), at(second)))
}

/// A file without the byte order mark that spreadsheets put in front of UTF-8.
///
/// ```
/// use brasa_power::delimited::without_mark;
///
/// assert_eq!(without_mark(b"\xef\xbb\xbfhour,load"), b"hour,load");
/// assert_eq!(without_mark(b"hour,load"), b"hour,load");
/// ```
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// An error of a file as a whole.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::delimited::file_error;
///
/// let error = file_error(Path::new("load.csv"), "must have 8760 rows, got 24");
/// assert_eq!(error.to_string(), "load.csv: must have 8760 rows, got 24");
/// ```
pub fn file_error(path: &Path, reason: &str) -> EnergyError {
    EnergyError::Schema { path: path.to_owned(), reason: field::printable(reason) }
}

/// Whether a cell says that there is no value, in the words of the programs that write tables.
///
/// ```
/// use brasa_power::delimited::is_missing;
///
/// assert!(["", "NaN", "n/a", "null"].into_iter().all(is_missing));
/// assert!(!is_missing("0"));
/// ```
pub fn is_missing(cell: &str) -> bool {
    cell.is_empty() || ["nan", "na", "n/a", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

fn text(record: &ByteRecord, index: usize) -> String {
    String::from_utf8_lossy(record.get(index).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Delimited::read(Path::new("a.csv"), text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn other_separators_and_repeated_columns_are_named() {
        assert_eq!(
            refused("hour;load\n1;2,5\n"),
            "a.csv: its columns are separated by semicolons, but must be separated by commas, with a point in decimal numbers"
        );
        assert!(refused("hour\tload\n1\t2\n").contains("separated by tabs"));
        assert_eq!(
            refused("hour,load, load\n1,2,3\n"),
            "a.csv: must have `load` once, got column 2 `load` and column 3 `load`"
        );
        // Columns without a name are those of spreadsheets, and one column needs no separator.
        for text in ["a,,\n1,,\n", "load\n1\n"] {
            assert!(Delimited::read(Path::new("a.csv"), text.as_bytes()).is_ok(), "{text}");
        }
    }
}
