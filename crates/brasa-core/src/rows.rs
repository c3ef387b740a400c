//! Batch-first values that buffers store.

use std::any::Any;
use std::ops::Range;

use brasa_kernels::{concat_rows, select_rows};
use burn::tensor::kind::Numeric;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::Normalization;

/// `[n]`: indices of rows, for [`Rows::select`].
///
/// ```
/// use brasa_core::{Rows, read_back, row_indices};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let rows = Tensor::<1>::from_floats([5.0, 6.0, 7.0], &device);
/// assert_eq!(read_back(Rows::select(&rows, row_indices([2, 0], &device))), [7.0, 5.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn row_indices(rows: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.into_iter().map(|row| row as i32).collect();
    let n = rows.len();
    Tensor::from_data(TensorData::new(rows, [n]), device)
}

/// The rows of environments with `n_agents` rows each.
pub(crate) fn rows_of_envs(envs: Tensor<1, Int>, n_agents: usize) -> Tensor<1, Int> {
    if n_agents == 1 {
        return envs;
    }
    let n_envs = envs.dims()[0];
    let agents = Tensor::<1, Int>::arange(0..n_agents as i64, &envs.device()).unsqueeze_dim::<2>(0);
    let first = (envs * n_agents as i64).unsqueeze_dim::<2>(1).expand([n_envs, n_agents]);
    (first + agents.expand([n_envs, n_agents])).reshape([n_envs * n_agents])
}

/// A tensor, or a struct of tensors, whose first dimension counts rows.
///
/// A row belongs to one agent of one environment. Buffers and loops require nothing else of an observation or action.
///
/// ```
/// use brasa_core::{Rows, read_back};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut rows = Tensor::<2>::from_floats([[1.0], [2.0], [3.0]], &device);
/// rows.assign(0..1, Tensor::from_floats([[9.0]], &device));
/// let picked = Rows::select(&rows, Tensor::from_ints([2, 0], &device));
/// assert_eq!(read_back(picked), [3.0, 9.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no rows that can be selected",
    note = "a struct of tensors gets them by `rows_by_field!`"
)]
pub trait Rows: Clone + Send {
    /// Number of rows.
    fn n_rows(&self) -> usize;

    /// Memory of a row in bytes, without the bookkeeping of tensors.
    fn bytes_per_row(&self) -> f64;

    /// `n_rows` rows of zeros, otherwise shaped as `self`.
    fn zeroed(&self, n_rows: usize, device: &Device) -> Self;

    /// The rows at `indices`, in this order; an index may occur more than once.
    fn select(&self, indices: Tensor<1, Int>) -> Self;

    /// The rows in `range`, which may share memory with all rows.
    ///
    /// # Panics
    /// If there are fewer rows.
    fn range(&self, range: Range<usize>) -> Self;

    /// The rows of the environments at `envs`, each with `n_agents` rows that follow one another. A form that has once what these rows share keeps it.
    fn select_envs(&self, envs: Tensor<1, Int>, n_agents: usize) -> Self {
        self.select(rows_of_envs(envs, n_agents))
    }

    /// Replaces the rows in `range`, in place if this is the only handle to the memory.
    ///
    /// # Panics
    /// If the shape or number of `rows` does not fit.
    fn assign(&mut self, range: Range<usize>, rows: Self);

    /// All rows of `parts`, in this order.
    ///
    /// # Panics
    /// If there are no parts or their shapes differ.
    fn cat(parts: Vec<Self>) -> Self;

    /// The rows of `other` where `mask` is true, the own ones elsewhere; `mask` has one flag per row.
    ///
    /// # Panics
    /// If the shapes differ.
    fn mask_where(self, mask: &Tensor<1, Bool>, other: Self) -> Self;

    /// `[n_rows, width]`: the numbers that [`Rows::normalized`] changes; `None` where this form cannot be normalized.
    fn normalizable(&self) -> Option<Tensor<2>> {
        None
    }

    /// The same observations with mean 0 and deviation 1; `None` where this form cannot be normalized, as by default.
    fn normalized(self, _by: &Normalization) -> Option<Self> {
        None
    }
}

impl<const D: usize, K: Numeric + 'static> Rows for Tensor<D, K> {
    fn n_rows(&self) -> usize {
        self.dims()[0]
    }

    fn bytes_per_row(&self) -> f64 {
        (self.dims()[1..].iter().product::<usize>() * self.dtype().size()) as f64
    }

    fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        let mut shape = self.dims();
        shape[0] = n_rows;
        Tensor::zeros(shape, device)
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        // Of numbers on the CPU, a loop over memory.
        let selected = (self as &dyn Any).downcast_ref().map(|rows: &Tensor<D>| select_rows(rows, &indices));
        match selected {
            Some(rows) => *(Box::new(rows) as Box<dyn Any>).downcast().expect("the type of the rows"),
            None => Tensor::select(self.clone(), 0, indices),
        }
    }

    fn range(&self, range: Range<usize>) -> Self {
        self.clone().slice(range)
    }

    fn assign(&mut self, range: Range<usize>, rows: Self) {
        self.inplace(|tensor| tensor.slice_assign(range, rows));
    }

    fn cat(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            // Burn would copy it.
            return parts.remove(0);
        }
        match (&mut parts as &mut dyn Any).downcast_mut::<Vec<Tensor<D>>>().map(std::mem::take) {
            Some(floats) => *(Box::new(concat_rows(floats)) as Box<dyn Any>).downcast().expect("the type of the rows"),
            None => Tensor::cat(parts, 0),
        }
    }

    fn mask_where(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        let shape = self.dims();
        let mut column = [1; D];
        column[0] = shape[0];
        Tensor::mask_where(self, mask.clone().reshape(column).expand(shape), other)
    }
}

/// Implements [`Rows`] for a struct, field by field. The crate depends on `burn`. Methods behind the fields replace the default ones. Fields in
/// brackets describe all rows together: what selects or joins rows sets them to their default.
///
/// ```
/// use brasa_core::{Obs, Rows, rows_by_field};
/// use burn::tensor::Tensor;
///
/// #[derive(Clone)]
/// struct Sighted<O> {
///     obs: O,
///     distance: Option<Tensor<1>>,
/// }
///
/// rows_by_field!([O: Rows] Sighted<O> { obs, distance });
///
/// let device = brasa_device::open_named("cpu")?;
/// let obs = Obs::new(Tensor::from_floats([[1.0, 2.0], [3.0, 4.0]], &device));
/// let rows = Sighted { obs, distance: Some(Tensor::from_floats([0.5, 1.5], &device)) };
/// assert_eq!((rows.n_rows(), rows.bytes_per_row()), (2, 12.0));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[macro_export]
macro_rules! rows_by_field {
    ([$($generics:tt)*] $name:ty { $first:ident $(, $field:ident)* $(, [$whole:ident])? $(,)? } $($methods:tt)*) => {
        impl<$($generics)*> $crate::Rows for $name {
            fn n_rows(&self) -> usize {
                $crate::Rows::n_rows(&self.$first)
            }

            fn bytes_per_row(&self) -> f64 {
                $crate::Rows::bytes_per_row(&self.$first) $(+ $crate::Rows::bytes_per_row(&self.$field))*
            }

            fn zeroed(&self, n_rows: usize, device: &::burn::tensor::Device) -> Self {
                Self {
                    $first: $crate::Rows::zeroed(&self.$first, n_rows, device),
                    $($field: $crate::Rows::zeroed(&self.$field, n_rows, device),)*
                    $($whole: Default::default(),)?
                }
            }

            fn select(&self, indices: ::burn::tensor::Tensor<1, ::burn::tensor::Int>) -> Self {
                Self {
                    $($field: $crate::Rows::select(&self.$field, indices.clone()),)*
                    $first: $crate::Rows::select(&self.$first, indices),
                    $($whole: Default::default(),)?
                }
            }

            fn range(&self, range: ::std::ops::Range<usize>) -> Self {
                Self {
                    $($field: $crate::Rows::range(&self.$field, range.clone()),)*
                    $first: $crate::Rows::range(&self.$first, range),
                    $($whole: Default::default(),)?
                }
            }

            fn select_envs(&self, envs: ::burn::tensor::Tensor<1, ::burn::tensor::Int>, n_agents: usize) -> Self {
                Self {
                    $($field: $crate::Rows::select_envs(&self.$field, envs.clone(), n_agents),)*
                    $first: $crate::Rows::select_envs(&self.$first, envs, n_agents),
                    $($whole: Default::default(),)?
                }
            }

            fn assign(&mut self, range: ::std::ops::Range<usize>, rows: Self) {
                $($crate::Rows::assign(&mut self.$field, range.clone(), rows.$field);)*
                $crate::Rows::assign(&mut self.$first, range, rows.$first);
                $(self.$whole = Default::default();)?
            }

            fn cat(parts: Vec<Self>) -> Self {
                let mut $first = Vec::with_capacity(parts.len());
                $(let mut $field = Vec::with_capacity(parts.len());)*
                for part in parts {
                    $first.push(part.$first);
                    $($field.push(part.$field);)*
                }
                Self {
                    $first: $crate::Rows::cat($first),
                    $($field: $crate::Rows::cat($field),)*
                    $($whole: Default::default(),)?
                }
            }

            fn mask_where(self, mask: &::burn::tensor::Tensor<1, ::burn::tensor::Bool>, other: Self) -> Self {
                Self {
                    $first: $crate::Rows::mask_where(self.$first, mask, other.$first),
                    $($field: $crate::Rows::mask_where(self.$field, mask, other.$field),)*
                    $($whole: Default::default(),)?
                }
            }

            $($methods)*
        }
    };
}

/// No values: for policies without [`crate::Policy::Extra`].
impl Rows for () {
    fn n_rows(&self) -> usize {
        0
    }
    fn bytes_per_row(&self) -> f64 {
        0.0
    }
    fn zeroed(&self, _: usize, _: &Device) -> Self {}
    fn select(&self, _: Tensor<1, Int>) -> Self {}
    fn range(&self, _: Range<usize>) -> Self {}
    fn assign(&mut self, _: Range<usize>, _: Self) {}
    fn cat(_: Vec<Self>) -> Self {}
    fn mask_where(self, _: &Tensor<1, Bool>, _: Self) -> Self {}
}

/// An optional part: all rows have it or none has it.
impl<R: Rows> Rows for Option<R> {
    fn n_rows(&self) -> usize {
        self.as_ref().map_or(0, Rows::n_rows)
    }

    fn bytes_per_row(&self) -> f64 {
        self.as_ref().map_or(0.0, Rows::bytes_per_row)
    }

    fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        self.as_ref().map(|rows| rows.zeroed(n_rows, device))
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        self.as_ref().map(|rows| rows.select(indices))
    }

    fn range(&self, range: Range<usize>) -> Self {
        self.as_ref().map(|rows| rows.range(range))
    }

    fn select_envs(&self, envs: Tensor<1, Int>, n_agents: usize) -> Self {
        self.as_ref().map(|rows| rows.select_envs(envs, n_agents))
    }

    fn assign(&mut self, range: Range<usize>, rows: Self) {
        match (self, rows) {
            (Some(all), Some(rows)) => all.assign(range, rows),
            (None, None) => {}
            _ => panic!("either every row has this part or none"),
        }
    }

    fn cat(parts: Vec<Self>) -> Self {
        let n = parts.len();
        let parts: Vec<R> = parts.into_iter().flatten().collect();
        assert!(parts.len() == n || parts.is_empty(), "either every row has this part or none");
        (!parts.is_empty()).then(|| R::cat(parts))
    }

    fn mask_where(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        match (self, other) {
            (Some(rows), Some(other)) => Some(rows.mask_where(mask, other)),
            (None, None) => None,
            _ => panic!("either every row has this part or none"),
        }
    }
}
