//! What a machine can hold and do: device profiles and opening a Burn backend.
