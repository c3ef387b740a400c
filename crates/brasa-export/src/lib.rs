//! Policies and weights of other programs.
//!
//! An [`ExportedPolicy`] is the greedy policy of a network as a list of layers, with the normalization of observations, the action mask
//! and the scaling of actions inside: from observations to actions of the environment. It is written as [ONNX](ExportedPolicy::to_onnx),
//! as a [C header](ExportedPolicy::to_c) without dependencies, as [JavaScript](ExportedPolicy::to_js) or as
//! [safetensors](ExportedPolicy::to_safetensors), and it
//! [acts](ExportedPolicy::act) by itself. It is also what a model of [Stable-Baselines3](ExportedPolicy::from_stable_baselines3) becomes.
//! This crate knows neither Burn nor environments.
//!
//! Networks of `brasa-nn` describe themselves as such lists; `brasa export RUN` writes the files.
//!
//! ```
//! use brasa_export::{About, ExportedPolicy, Function, Layer, Output};
//!
//! let policy = ExportedPolicy {
//!     obs_width: 2,
//!     n_agents: 1,
//!     masked: false,
//!     layers: vec![
//!         Layer::Normalize { mean: vec![1.0, 0.0], deviation: vec![2.0, 1.0], clip: 10.0 },
//!         Layer::linear(vec![1.0, -1.0, 0.5, 2.0], vec![0.0, 0.1]),
//!         Layer::Activation(Function::Tanh),
//!     ],
//!     output: Output::Choice { heads: vec![2] },
//!     about: About::default(),
//! };
//! policy.validate()?;
//! // Two rows of observations: the first action of the first row has the larger score.
//! assert_eq!(policy.act(&[3.0, 0.0, -1.0, 0.5], None), [0.0, 1.0]);
//! assert_eq!(ExportedPolicy::from_safetensors(&policy.to_safetensors())?, policy);
//! # Ok::<(), brasa_export::ExportError>(())
//! ```

mod about;
mod archive;
mod budget;
mod c;
mod file;
mod graph;
mod groups;
mod image;
mod js;
mod memory;
mod names;
mod onnx;
mod pickle;
mod policy;
mod pth;
mod stable_baselines3;
mod vec_normalize;

pub use about::{About, Column};
pub use archive::Archive;
pub use budget::Budget;
pub use graph::{Affine, Attention, Edges, GraphNetwork, Head, Norm, Readout, Residual};
pub use groups::Groups;
pub use image::{ImageLayer, ImageShape, Window};
pub use js::JsModule;
pub use memory::{Cell, Memory};
pub use policy::{ExportError, ExportedPolicy, Function, Layer, NO_ACTION, Output, high_and_low, joined, scaling};
pub use pth::{StateDict, Weights};
