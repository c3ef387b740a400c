//! Reading of pickles: of a `.pth` file they say which numbers are which tensor, of `VecNormalize` they are the whole file.
//!
//! A pickle is a program for a stack machine (Python's `pickletools` documents its operations). This machine has the operations that
//! Python's protocols 2 to 5 write for plain data and objects. It imports and calls nothing: what would be an object of some class is the
//! name of that class beside the arguments and the state.

use std::collections::HashMap;

use crate::Budget;

/// Most values that are made: a network has some hundreds.
const MOST_VALUES: usize = 1_000_000;

/// A value, by its number in [`Pickle`].
pub(crate) type Id = usize;

/// A value of a pickle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Int(i64),
    Real(f64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
    /// A list, a tuple or a set.
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A class or function, by its module and name.
    Global(String),
    /// Numbers outside the pickle: their kind and key.
    Storage(String, String),
    /// Numbers of a storage.
    Tensor {
        storage: Id,
        offset: usize,
        shape: Vec<usize>,
        stride: Vec<usize>,
    },
    /// An object: its class, or the function that would make it, with the arguments and the state that is set afterwards.
    Object {
        class: String,
        arguments: Id,
        state: Option<Id>,
    },
    /// Anything else: it has no effect.
    Other,
}

impl Value {
    /// Bytes of its memory besides the value itself.
    fn owned_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Global(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => size_of_val(&items[..]),
            Self::Dict(entries) => size_of_val(&entries[..]),
            Self::Storage(kind, key) => kind.len() + key.len(),
            Self::Tensor { shape, stride, .. } => size_of_val(&shape[..]) + size_of_val(&stride[..]),
            Self::Object { class, .. } => class.len(),
            Self::Int(_) | Self::Real(_) | Self::Bool(_) | Self::Other => 0,
        }
    }

    /// What it is, for messages: the value itself may have any length.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) | Self::Real(_) => "a number",
            Self::Bool(_) => "a truth value",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a class",
            Self::Storage(..) => "a storage",
            Self::Tensor { .. } => "a tensor",
            Self::Object { .. } => "an object",
            Self::Other => "nothing",
        }
    }
}

/// The values of a pickle; they refer to one another by number, as a pickle may add to a value that it has used before.
#[derive(Debug)]
pub(crate) struct Pickle {
    values: Vec<Value>,
    pub(crate) root: Id,
}

impl Pickle {
    /// Reads one pickle from the start of `bytes`, which is then after its end. Its values take bytes of `budget`.
    ///
    /// # Errors
    /// The operation that is not known, or what is missing.
    pub(crate) fn read(bytes: &mut &[u8], budget: &mut Budget) -> Result<Self, String> {
        let mut machine =
            Machine { bytes, values: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new(), budget };
        while machine.operate()? {}
        let root = machine.pop()?;
        Ok(Self { values: machine.values, root })
    }

    pub(crate) fn get(&self, id: Id) -> &Value {
        &self.values[id]
    }

    /// Kinds of all storages.
    pub(crate) fn storage_kinds(&self) -> impl Iterator<Item = &str> {
        self.values
            .iter()
            .filter_map(|value| if let Value::Storage(kind, _) = value { Some(kind.as_str()) } else { None })
    }

    /// The value of `key` in a dictionary.
    pub(crate) fn entry(&self, dict: Id, key: &str) -> Option<Id> {
        let Value::Dict(entries) = self.get(dict) else { return None };
        let (_, value) =
            entries.iter().find(|(name, _)| matches!(self.get(*name), Value::Text(name) if name == key))?;
        Some(*value)
    }
}

struct Machine<'a, 'b> {
    bytes: &'a mut &'b [u8],
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    budget: &'a mut Budget,
}

impl Machine<'_, '_> {
    /// Does one operation; `false` at the end of the pickle.
    fn operate(&mut self) -> Result<bool, String> {
        let [operation] = self.take()?;
        match operation {
            // PROTO
            0x80 => drop(self.take::<1>()?),
            b'.' => return Ok(false),
            b'(' => {
                self.budget.spend(size_of::<usize>())?;
                self.marks.push(self.stack.len());
            }
            // FRAME: the next part is as long as said.
            0x95 => drop(self.take::<8>()?),
            // NONE, NEWTRUE, NEWFALSE
            b'N' => self.push(Value::Other)?,
            0x88 | 0x89 => self.push(Value::Bool(operation == 0x88))?,
            b'J' => {
                let value = i32::from_le_bytes(self.take()?);
                self.push(Value::Int(value.into()))?;
            }
            b'K' => {
                let [value] = self.take()?;
                self.push(Value::Int(value.into()))?;
            }
            b'M' => {
                let value = u16::from_le_bytes(self.take()?);
                self.push(Value::Int(value.into()))?;
            }
            // LONG1
            0x8a => {
                let [length] = self.take()?;
                let digits = self.slice(length.into())?;
                let value = (digits.len() <= 8).then(|| signed(digits));
                self.push(value.map_or(Value::Other, Value::Int))?;
            }
            b'G' => {
                let value = f64::from_be_bytes(self.take()?);
                self.push(Value::Real(value))?;
            }
            // Texts and bytes, with 1, 4 or 8 bytes of length
            0x8c | b'X' | 0x8d => {
                let length = self.length(&[0x8c, b'X', 0x8d], operation)?;
                let text = std::str::from_utf8(self.slice(length)?).map_err(|error| error.to_string())?;
                let text = Value::Text(text.to_owned());
                self.push(text)?;
            }
            b'C' | b'B' | 0x8e | 0x96 => {
                let length = self.length(b"CB\x8e", operation)?;
                let bytes = Value::Bytes(self.slice(length)?.to_vec());
                self.push(bytes)?;
            }
            b'c' => {
                let global = Value::Global(format!("{}.{}", self.line()?, self.line()?));
                self.push(global)?;
            }
            // STACK_GLOBAL
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Text(module), Value::Text(name)) = (&self.values[module], &self.values[name]) else {
                    return Err("it names a class by something that is no text".into());
                };
                let global = Value::Global(format!("{module}.{name}"));
                self.push(global)?;
            }
            b'}' => self.push(Value::Dict(Vec::new()))?,
            // EMPTY_LIST, EMPTY_TUPLE, EMPTY_SET
            b']' | b')' | 0x8f => self.push(Value::List(Vec::new()))?,
            // TUPLE, FROZENSET
            b't' | 0x91 => {
                let items = self.since_mark()?;
                self.push(Value::List(items))?;
            }
            // TUPLE1 to TUPLE3
            0x85..=0x87 => {
                let mut items = (0x84..operation).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                self.push(Value::List(items))?;
            }
            b'q' => {
                let [key] = self.take()?;
                self.remember(key.into())?;
            }
            b'r' => {
                let key = u32::from_le_bytes(self.take()?);
                self.remember(key)?;
            }
            // MEMOIZE
            0x94 => {
                let key = u32::try_from(self.memo.len()).map_err(|_| "it remembers too much")?;
                self.remember(key)?;
            }
            b'h' => {
                let [key] = self.take()?;
                self.recall(key.into())?;
            }
            b'j' => {
                let key = u32::from_le_bytes(self.take()?);
                self.recall(key)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            // APPENDS, ADDITEMS
            b'e' | 0x90 => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(vec![key, value])?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(items)?;
            }
            // BUILD: the state of an object
            b'b' => {
                let (given, top) = (self.pop()?, self.top()?);
                if let Value::Object { state, .. } = &mut self.values[top] {
                    *state = Some(given);
                }
            }
            b'Q' => {
                let identity = self.pop()?;
                let storage = self.storage(identity)?;
                self.push(storage)?;
            }
            // NEWOBJ: an object of a class, for example a loss
            0x81 => {
                let (arguments, class) = (self.pop()?, self.pop()?);
                let object = self.object(class, arguments);
                self.push(object)?;
            }
            // REDUCE: a call
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let value = self.call(function, arguments)?;
                self.push(value)?;
            }
            other => return Err(format!("its pickle has the operation {other:#04x}, which is not supported")),
        }
        Ok(true)
    }

    fn call(&self, function: Id, arguments: Id) -> Result<Value, String> {
        let Value::Global(name) = &self.values[function] else { return Ok(Value::Other) };
        match name.as_str() {
            "collections.OrderedDict" => Ok(Value::Dict(Vec::new())),
            "torch._utils._rebuild_tensor_v2" => {
                let Value::List(arguments) = &self.values[arguments] else {
                    return Err("a tensor has no arguments".into());
                };
                let &[storage, offset, shape, stride, ..] = arguments.as_slice() else {
                    return Err(format!("a tensor has {} arguments, needs 4", arguments.len()));
                };
                let sizes = |id: Id| match &self.values[id] {
                    Value::List(items) => items.iter().map(|item| self.size(*item)).collect(),
                    other => Err(format!("the shape of a tensor must be a tuple, got {}", other.kind())),
                };
                Ok(Value::Tensor { storage, offset: self.size(offset)?, shape: sizes(shape)?, stride: sizes(stride)? })
            }
            _ => Ok(self.object(function, arguments)),
        }
    }

    fn object(&self, class: Id, arguments: Id) -> Value {
        match &self.values[class] {
            Value::Global(class) => Value::Object { class: class.clone(), arguments, state: None },
            _ => Value::Other,
        }
    }

    /// The storage of a persistent identity: the tuple `("storage", class, key, device, length)`.
    fn storage(&self, identity: Id) -> Result<Value, String> {
        let Value::List(parts) = &self.values[identity] else { return Err("a storage has no identity".into()) };
        match parts.get(1..3).map(|parts| [&self.values[parts[0]], &self.values[parts[1]]]) {
            Some([Value::Global(kind), Value::Text(key)]) => Ok(Value::Storage(kind.clone(), key.clone())),
            _ => Err("a storage has no class and key".into()),
        }
    }

    fn size(&self, id: Id) -> Result<usize, String> {
        match &self.values[id] {
            Value::Int(value) => usize::try_from(*value).map_err(|_| format!("a tensor has a size of {value}")),
            other => Err(format!("a size of a tensor must be a number, got {}", other.kind())),
        }
    }

    fn append(&mut self, mut items: Vec<Id>) -> Result<(), String> {
        self.budget.spend(items.len() * size_of::<Id>())?;
        let top = self.top()?;
        if let Value::List(list) = &mut self.values[top] {
            list.append(&mut items);
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<Id>) -> Result<(), String> {
        self.budget.spend(items.len() * size_of::<Id>())?;
        let top = self.top()?;
        if let Value::Dict(entries) = &mut self.values[top] {
            entries.extend(items.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value)));
        }
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() == MOST_VALUES {
            return Err(format!("it has more than {MOST_VALUES} values"));
        }
        self.budget.spend(size_of::<Id>() + size_of::<Value>() + value.owned_bytes())?;
        self.stack.push(self.values.len());
        self.values.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Id, String> {
        self.stack.pop().ok_or_else(|| "it takes a value that is not there".into())
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(|| "it changes a value that is not there".into())
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        let height = self.marks.pop().filter(|height| *height <= self.stack.len());
        Ok(self.stack.split_off(height.ok_or("it has no mark")?))
    }

    fn remember(&mut self, key: u32) -> Result<(), String> {
        self.budget.spend(2 * size_of::<Id>())?;
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), String> {
        let id = *self.memo.get(&key).ok_or_else(|| format!("it recalls {key}, which it did not remember"))?;
        self.budget.spend(size_of::<Id>())?;
        self.stack.push(id);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or_else(truncated)?;
        *self.bytes = rest;
        Ok(*head)
    }

    /// A length of 1, 4 or 8 bytes for the first, second or any other of `operations`.
    fn length(&mut self, operations: &[u8], operation: u8) -> Result<usize, String> {
        match operations.iter().position(|other| *other == operation) {
            Some(0) => self.take().map(|[length]| length.into()),
            Some(1) => self.take().map(|length| u32::from_le_bytes(length) as usize),
            _ => usize::try_from(u64::from_le_bytes(self.take()?)).map_err(|_| truncated()),
        }
    }

    fn slice(&mut self, length: usize) -> Result<&[u8], String> {
        let (head, rest) = self.bytes.split_at_checked(length).ok_or_else(truncated)?;
        *self.bytes = rest;
        Ok(head)
    }

    /// Text up to the end of its line.
    fn line(&mut self) -> Result<String, String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n').ok_or_else(truncated)?;
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        *self.bytes = &self.bytes[end + 1..];
        Ok(line)
    }
}

fn truncated() -> String {
    "it ends too early".into()
}

/// A number in two's complement, the lowest of at most 8 bytes first.
fn signed(digits: &[u8]) -> i64 {
    let negative = digits.last().is_some_and(|byte| *byte >= 0x80);
    let mut bytes = if negative { [0xff; 8] } else { [0; 8] };
    bytes[..digits.len()].copy_from_slice(digits);
    i64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Pickle, String> {
        Pickle::read(&mut &bytes[..], &mut Budget::of(bytes.len() as u64))
    }

    /// `pickle.dumps({"a": -2, "b": (1, 300)}, 2)`, with a value that is used twice.
    #[test]
    fn numbers_and_names() {
        let pickle = read(b"\x80\x02}q\x00(X\x01\x00\x00\x00aJ\xfe\xff\xff\xffX\x01\x00\x00\x00bK\x01M\x2c\x01\x86q\x01X\x01\x00\x00\x00ch\x01u.");
        let pickle = pickle.expect("a pickle");
        let entry = |key| pickle.entry(pickle.root, key).expect("an entry");
        assert_eq!(*pickle.get(entry("a")), Value::Int(-2));
        let Value::List(items) = pickle.get(entry("b")) else { panic!("a tuple") };
        assert_eq!(*pickle.get(items[1]), Value::Int(300));
        assert_eq!(entry("b"), entry("c"));
        assert_eq!(pickle.entry(pickle.root, "d"), None);
        assert_eq!(signed(&[0xff]), -1);
        assert_eq!(signed(&[0xff, 0]), 255);
        assert_eq!(signed(&[]), 0);
    }

    /// A pickle that calls `os.system` makes a value without effect.
    #[test]
    fn nothing_is_called() {
        let pickle = read(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.").expect("a pickle");
        let Value::Object { class, state: None, .. } = pickle.get(pickle.root) else { panic!("an object") };
        assert_eq!(class, "posix.system");
    }

    /// An object of the class `C` of the module `m` with `x = 0.5`, as protocol 4 writes it.
    #[test]
    fn objects_have_arguments_and_state() {
        let pickle = read(b"\x80\x04\x95\x2a\0\0\0\0\0\0\0\x8c\x01m\x94\x8c\x01C\x94\x93\x94)\x81\x94}\x94\x8c\x01x\x94G\x3f\xe0\0\0\0\0\0\0sb.");
        let pickle = pickle.expect("a pickle");
        let Value::Object { class, state: Some(state), .. } = pickle.get(pickle.root) else { panic!("an object") };
        assert_eq!(class, "m.C");
        assert_eq!(*pickle.get(pickle.entry(*state, "x").expect("an entry")), Value::Real(0.5));
    }

    /// A text of 1000 bytes, joined with itself again and again: `\x93` takes one byte and makes 2000.
    #[test]
    fn a_few_bytes_take_little_memory() {
        let mut copies = b"\x80\x04X\xe8\x03\0\0".to_vec();
        copies.extend([b'a'; 1000]);
        copies.extend(b"q\x000");
        let copies = copies.strip_suffix(b"0").expect("it was added").to_vec();
        let texts = [copies.clone(), b"h\0h\0\x93".repeat(100_000), b".".to_vec()].concat();
        // A mark, and a list of all that was recalled.
        let lists = [
            copies.clone(),
            b"(".to_vec(),
            b"h\0".repeat(1000),
            b"tq\x01".to_vec(),
            b"h\x01\x85".repeat(10),
            b".".to_vec(),
        ];
        read(&lists.concat()).expect("it is small");
        let shapes = [
            b"\x80\x02(".to_vec(),
            b"K\x01".repeat(10_000),
            b"tq\0ctorch._utils\n_rebuild_tensor_v2\nq\x01K\0q\x02".to_vec(),
            b"h\x01(h\x02h\x02h\0h\0tR".repeat(10_000),
            b".".to_vec(),
        ];
        for bytes in [texts, shapes.concat()] {
            let error = read(&bytes).expect_err("it takes too much");
            assert!(error.contains("its content takes more than"), "{error}");
        }
    }

    #[test]
    fn broken_pickles_are_errors() {
        for (bytes, part) in [
            (&b""[..], "too early"),
            (b"X\xff\xff\xff\xffab", "too early"),
            (b"cposix", "too early"),
            (b".", "not there"),
            (b"t.", "no mark"),
            (b"(0", "0x30"),
            (b"h\x05.", "recalls 5"),
            (b"}Q.", "no identity"),
            (b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffab", "too early"),
            (b"))\x93.", "no text"),
            (b"ctorch._utils\n_rebuild_tensor_v2\n)R.", "0 arguments"),
        ] {
            let error = read(bytes).expect_err("it must be refused");
            assert!(error.contains(part), "`{error}` does not say `{part}`");
        }
    }
}
