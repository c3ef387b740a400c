//! Named parameters, for files.

use brasa_core::read_back;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use thiserror::Error;

/// One parameter on the host.
///
/// ```
/// use brasa_nn::{LayerNorm, NamedParam, named_params};
///
/// let layer = LayerNorm::new(2, &brasa_device::open_named("cpu")?);
/// let scale = NamedParam { name: "scale".into(), shape: vec![2], values: vec![1.0, 1.0] };
/// assert_eq!(named_params(&layer)[0], scale);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NamedParam {
    /// Path in the module (`actor.hidden.0.weight`).
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub values: Vec<f32>,
}

/// Parameters that do not fit a module.
///
/// ```
/// use brasa_nn::{LayerNorm, load_params, named_params};
///
/// let device = brasa_device::open_named("cpu")?;
/// let params = named_params(&LayerNorm::new(2, &device));
/// let error = load_params(LayerNorm::new(3, &device), &params).unwrap_err();
/// assert_eq!(error.to_string(), "parameter `scale` has shape [2], the network needs [3]");
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// A parameter of the module is missing in the file.
    #[error("no parameter `{name}`; there are {known}")]
    Missing {
        /// Name.
        name: String,
        /// The parameters of the file.
        known: String,
    },
    /// A parameter has another shape.
    #[error("parameter `{name}` has shape {got:?}, the network needs {expected:?}")]
    Shape {
        /// Name.
        name: String,
        /// Shape in the file.
        got: Vec<usize>,
        /// Shape in the module.
        expected: Vec<usize>,
    },
}

/// All parameters of `module`, in the order of its fields; waits for the device.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::named_params;
///
/// let network = q_network(&brasa_device::open_named("cpu")?)?;
/// let names: Vec<String> = named_params(&network).into_iter().map(|param| param.name).collect();
/// assert_eq!(names, ["body.hidden.0.weight", "body.hidden.0.bias", "head.weight", "head.bias"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn named_params<M: Module>(module: &M) -> Vec<NamedParam> {
    let mut read = Read { path: Vec::new(), params: Vec::new() };
    module.visit(&mut read);
    read.params
}

/// `module` with its parameters replaced by those of the same names; identities and device are kept.
///
/// # Errors
/// [`ParamsError`] if one is missing or has another shape.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{LayerNorm, load_params, named_params};
///
/// let layer = LayerNorm::new(2, &brasa_device::open_named("cpu")?);
/// let mut params = named_params(&layer);
/// params[1].values = vec![0.5, -0.5];
/// let layer = load_params(layer, &params)?;
/// assert_eq!(read_back(layer.shift.val()), [0.5, -0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn load_params<M: Module>(module: M, params: &[NamedParam]) -> Result<M, ParamsError> {
    let mut write = Write { path: Vec::new(), params, error: None };
    let module = module.map(&mut write);
    match write.error {
        Some(error) => Err(error),
        None => Ok(module),
    }
}

struct Read {
    path: Vec<String>,
    params: Vec<NamedParam>,
}

impl ModuleVisitor for Read {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let shape = value.dims().to_vec();
        let values = read_back(value.inner());
        self.params.push(NamedParam { name: self.path.join("."), shape, values });
    }
}

struct Write<'a> {
    path: Vec<String>,
    params: &'a [NamedParam],
    error: Option<ParamsError>,
}

impl ModuleMapper for Write<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(found) = self.params.iter().find(|param| param.name == name) else {
            let known = self.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
            self.error.get_or_insert(ParamsError::Missing { name, known });
            return param;
        };
        let expected = param.val().dims().to_vec();
        if found.shape != expected {
            self.error.get_or_insert(ParamsError::Shape { name, got: found.shape.clone(), expected });
            return param;
        }
        param.map(|old| {
            let data = TensorData::new(found.values.clone(), found.shape.clone());
            let value = Tensor::<D>::from_data(data, &old.device());
            if old.is_require_grad() { value.require_grad() } else { value }
        })
    }
}
