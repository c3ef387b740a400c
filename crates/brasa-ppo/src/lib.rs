//! Proximal policy optimization.
