//! examples of Brasa.
