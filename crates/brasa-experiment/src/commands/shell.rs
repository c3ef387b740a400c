//! `completions` and `man`: the arguments for a shell and for `man`.

use std::fs;
use std::path::Path;

use clap_complete::Shell;

use crate::ExperimentError;

/// The script that completes arguments.
///
/// # Errors
/// [`ExperimentError::Failed`] if the script is no text.
pub fn completions(mut arguments: clap::Command, shell: Shell) -> Result<String, ExperimentError> {
    let (name, mut script) = (arguments.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut arguments, name, &mut script);
    String::from_utf8(script).map_err(|error| ExperimentError::Failed(error.to_string()))
}

/// Writes a page for the program and one for each command.
///
/// # Errors
/// [`ExperimentError`] if a page cannot be written.
pub fn man(arguments: clap::Command, folder: &Path) -> Result<String, ExperimentError> {
    let failed = |error: std::io::Error| ExperimentError::cannot_write(folder, &error);
    fs::create_dir_all(folder).map_err(failed)?;
    let name = arguments.get_name().to_owned();
    clap_mangen::generate_to(arguments, folder).map_err(failed)?;
    Ok(format!("Manual pages: {0}; read one with `man {0}/{name}.1`\n", folder.display()))
}
