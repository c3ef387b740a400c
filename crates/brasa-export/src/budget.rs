//! Memory that a file may take.

use serde_json::Value;

use crate::ExportError;

/// Bytes that any file may take.
const FREE: u64 = 1 << 26;
/// Bytes that a file may take for each of its own, beyond [`FREE`]: tables are compressed to a tenth, and a program of a few bytes, or an
/// archive whose entries share one body, to nothing.
const RATIO: u64 = 100;
/// Bytes that no file may exceed.
const MOST: u64 = 1 << 31;
/// Bytes of a value of JSON.
const JSON_VALUE: usize = 80;

/// Bytes that the content of one file may still take. Everything that is read from the file shares it, also archives within it: entries, texts,
/// shapes, stacks and tensors.
///
/// ```
/// use brasa_export::Budget;
///
/// let text = br#"{ "n_envs": 4 }"#;
/// let mut budget = Budget::of(text.len() as u64);
/// assert_eq!(budget.json(text)?["n_envs"], 4);
/// let error = budget.json(b"{").unwrap_err();
/// assert!(error.to_string().starts_with("EOF while parsing"));
/// # Ok::<(), brasa_export::ExportError>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    left: u64,
    most: u64,
}

impl Budget {
    /// The budget of a file of `n_bytes`: 64 MiB and 100 times its size, at most 2 GiB.
    pub fn of(n_bytes: u64) -> Self {
        let most = FREE.saturating_add(n_bytes.saturating_mul(RATIO)).min(MOST);
        Self { left: most, most }
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes `n_bytes`.
    ///
    /// # Errors
    /// If fewer are left, as the end of a sentence about the file.
    pub(crate) fn spend(&mut self, n_bytes: usize) -> Result<(), String> {
        match self.left.checked_sub(n_bytes as u64) {
            Some(left) => self.left = left,
            None => return Err(self.exceeded()),
        }
        Ok(())
    }

    pub(crate) fn exceeded(&self) -> String {
        format!("its content takes more than {} bytes, which are 64 MiB and {RATIO} times its size or 2 GiB", self.most)
    }

    /// A JSON document, whose values take memory.
    ///
    /// # Errors
    /// [`ExportError::Content`] if it is no JSON, or takes too much.
    pub fn json(&mut self, bytes: &[u8]) -> Result<Value, ExportError> {
        // Every value but the first one is after one of these.
        let n_values = bytes.iter().filter(|byte| b"[{,:".contains(byte)).count();
        self.spend(n_values.saturating_mul(JSON_VALUE).saturating_add(bytes.len()))?;
        serde_json::from_slice(bytes).map_err(|error| ExportError::Content(error.to_string()))
    }
}
