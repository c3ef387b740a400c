//! Names of functions and constants in other languages.

use crate::ExportError;

/// Words that JavaScript or C does not accept as names, or that a program in a page or in Node has already.
const RESERVED: &str = "\
    abstract alignas alignof and and_eq arguments as asm async auto await bitand bitor bool boolean break byte case catch char class \
    compl concept const constexpr const_cast continue debugger decltype default delete do double dynamic_cast else enum eval explicit \
    export extends extern false final finally float for friend from function get goto if implements import in inline instanceof int \
    interface let long mutable namespace native new noexcept not not_eq null nullptr of operator or or_eq package private protected \
    public register reinterpret_cast requires restrict return set short signed sizeof static static_assert static_cast struct super \
    switch synchronized template this thread_local throw throws transient true try typedef typeid typename typeof typeof_unqual union \
    unsigned using var virtual void volatile wchar_t while with xor xor_eq yield \
    Array ArrayBuffer DataView Float32Array Infinity JSON Math NaN Number Object RangeError String TypeError Uint8Array atob brasaPolicy \
    document exports globalThis global location module process require self top undefined window";

/// Whether `name` can be a name in C and JavaScript.
pub(crate) fn check(name: &str) -> Result<(), ExportError> {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(ExportError::Name(name.to_owned()));
    }
    match RESERVED.split_whitespace().any(|word| word == name) {
        true => Err(ExportError::Reserved(name.to_owned())),
        false => Ok(()),
    }
}
