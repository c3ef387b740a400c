//! Training loops, run directories, checkpoints and sinks.
