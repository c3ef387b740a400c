//! Experiments that `new` writes for a start.

use crate::Registry;

/// An experiment with sample data that runs as it is.
///
/// ```
/// use brasa_experiment::{Registry, Template};
///
/// let mut registry = Registry::default();
/// let files: &[(&str, &[u8])] = &[("room.toml", b"[scenario.room]\nwidth_m = 4.0\n")];
/// registry.template(Template { name: "room", about: "a heated room", files, first: "train room.toml" });
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// Its name in `new DIR --scenario NAME`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Paths below the directory, and contents.
    pub files: &'static [(&'static str, &'static [u8])],
    /// The arguments of this program to try first, within the directory; another command if it begins with `$ `.
    pub first: &'static str,
}

impl Registry {
    /// Adds an experiment that `new` can write. It replaces one of the same name.
    pub fn template(&mut self, template: Template) {
        self.templates.retain(|known| known.name != template.name);
        self.templates.push(template);
    }
}
