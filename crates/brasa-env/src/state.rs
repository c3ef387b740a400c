//! Saved states with a tag of their type.

use std::any::type_name;

use serde::{Serialize, de::DeserializeOwned};

use crate::EnvError;

/// Type and version of a saved state; bytes of another type, version or number of environments are rejected.
///
/// ```
/// use brasa_env::StateTag;
///
/// let tag = StateTag::new("room", 1);
/// let bytes = tag.encode(2, &[20.5, 21.0]);
/// assert_eq!(tag.decode::<[f64; 2]>(2, &bytes)?, [20.5, 21.0]);
/// let error = StateTag::new("car", 1).decode::<[f64; 2]>(2, &bytes).unwrap_err();
/// assert!(error.to_string().contains("it is a state of `room`, expected `car`"));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateTag {
    /// Name of the type.
    pub kind: &'static str,
    /// Version of its layout; it changes when older bytes are no longer valid.
    pub version: u32,
}

impl StateTag {
    /// A tag for the type `kind`.
    pub const fn new(kind: &'static str, version: u32) -> Self {
        Self { kind, version }
    }

    /// The tag of a Rust type, named by its path.
    pub fn of<T: ?Sized>(version: u32) -> Self {
        Self { kind: type_name::<T>(), version }
    }

    /// Encodes `value`, the state of `n_envs` environments, for [`StateTag::decode`].
    pub fn encode<T: Serialize + ?Sized>(self, n_envs: usize, value: &T) -> Vec<u8> {
        let head = (self.kind, self.version, n_envs as u64);
        let head = postcard::to_stdvec(&head).expect("a name and two numbers always serialize");
        postcard::to_extend(value, head).expect("plain values always serialize")
    }

    /// Decodes a value that was encoded with this tag and `n_envs`.
    ///
    /// # Errors
    /// [`EnvError::State`] for bytes of another type, version or number of environments, and for missing or additional
    /// bytes.
    pub fn decode<T: DeserializeOwned>(self, n_envs: usize, bytes: &[u8]) -> Result<T, EnvError> {
        let fail = |reason: String| Err(EnvError::State { reason });
        let Ok(((kind, version, saved_envs), body)) = postcard::take_from_bytes::<(&str, u32, u64)>(bytes) else {
            return fail(format!("{} bytes do not begin with the name of an environment", bytes.len()));
        };
        if kind != self.kind {
            return fail(format!("it is a state of `{}`, expected `{}`", short(kind), short(self.kind)));
        }
        let kind = short(kind);
        if version != self.version {
            return fail(format!("it is version {version} of `{kind}`, expected version {}", self.version));
        }
        if saved_envs != n_envs as u64 {
            return fail(format!("it holds {saved_envs} environments, the batch {n_envs}"));
        }
        match postcard::take_from_bytes(body) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => fail(format!("{} bytes follow the state of `{kind}`", rest.len())),
            Err(error) => fail(format!("the state of `{kind}` cannot be read: {error}")),
        }
    }
}

/// The name of a type without its modules.
fn short(kind: &str) -> String {
    let (mut name, mut word) = (String::new(), String::new());
    for c in kind.chars() {
        match c {
            // The word before was a module.
            ':' => word.clear(),
            c if c.is_alphanumeric() || c == '_' || c == '-' => word.push(c),
            c => {
                name.push_str(&word);
                name.push(c);
                word.clear();
            }
        }
    }
    name + &word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_lose_their_modules() {
        assert_eq!(short("a::b::Limit<alloc::boxed::Box<dyn c::Batch>>"), "Limit<Box<dyn Batch>>");
        assert_eq!(short("uara-bs-agent"), "uara-bs-agent");
    }

    #[test]
    fn every_misfit_is_told_apart() {
        let tag = StateTag::new("room", 2);
        let bytes = tag.encode(3, &7u64);
        assert_eq!(tag.decode::<u64>(3, &bytes).expect("it fits"), 7);
        let reason = |tag: StateTag, n_envs, bytes: &[u8]| {
            tag.decode::<u64>(n_envs, bytes).expect_err("it does not fit").to_string()
        };
        assert!(reason(StateTag::new("room", 1), 3, &bytes).contains("version 2 of `room`, expected version 1"));
        assert!(reason(tag, 4, &bytes).contains("it holds 3 environments, the batch 4"));
        assert!(reason(tag, 3, &[&bytes[..], &[0]].concat()).contains("1 bytes follow the state of `room`"));
        assert!(reason(tag, 3, &bytes[..bytes.len() - 1]).contains("cannot be read"));
        assert!(reason(tag, 3, &[]).contains("do not begin with the name"));
    }
}
