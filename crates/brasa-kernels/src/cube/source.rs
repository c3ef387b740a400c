//! The CUDA C++ of every kernel, made without a GPU, so that NVIDIA's compiler can check it.

use std::sync::Arc;

use cubecl_core::device::{DeviceId, ServiceId};
use cubecl_core::environment::stream::StreamId;
use cubecl_cpp::shared::{CompilationOptions, CppCompiler, CppSupportedFeatures, register_supported_types};
use cubecl_cpp::target::Cuda;

use super::activation::{activation_backward, activation_forward};
use super::assign::assign;
use super::clip::clip_scale;
use super::concat::{concat, split};
use super::cubecl::cmma::MatrixLayout;
use super::cubecl::ir::{
    ContiguousElements, DeviceIdentity, HardwareProperties, MemoryDeviceProperties, MmaProperties,
};
use super::cubecl::prelude::*;
use super::cubecl::profile::TimingMethod;
use super::cubecl::server::Handle;
use super::cubecl::std::tensor::layout::linear::{LinearViewLaunch, linear_view};
use super::cubecl::zspace::{Shape, Strides};
use super::cubecl::{Compiler, CubeKernel, define_kernel};
use super::elementwise::elementwise;
use super::gae::gae;
use super::graph_attention::{Form, attention_forward, attention_scores_backward, attention_values_backward};
use super::layer_norm::{layer_norm_backward, layer_norm_forward};
use super::mlp::{mlp_deltas, mlp_forward, mlp_gradients};
use super::row_loss::{LossForm, row_loss};
use super::row_rule::row_rule;
use super::total::total;
use crate::Activation;
use crate::elementwise::{Load, Node, Operation, Part, Program, Rows};

/// One kernel with its arguments; those that are not tensors are constants of the translation.
macro_rules! source {
    ($name:expr, $kernel:ident, $($argument:expr),*) => {{
        let (count, dim) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(256));
        let kernel = $kernel::create_dummy_kernel(properties(), target(), count, dim, $($argument),*);
        ($name.to_owned(), translated(&kernel))
    }};
}

/// Name and CUDA C++ of every kernel, in every form that the library launches.
///
/// # Panics
/// If CubeCL cannot translate a kernel.
pub fn cuda_sources() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for with_discount in [false, true] {
        let name = format!("gae-{with_discount}");
        all.push(source!(name, gae, t(), t(), t(), t(), t(), t(), t(), 0.9, 0.9, with_discount));
    }
    all.push(source!("total", total, t(), t()));
    all.push(source!("clip_scale", clip_scale, t(), t(), 0.5, 1e-6));
    for (name, program) in crate::row_rule::programs() {
        let list = |n: usize| (0..n).map(|_| t()).collect();
        let n_columns = program.columns.as_ref().map_or(0, |columns| columns.outputs[0].len());
        let (inputs, results, columns) = (list(3), list(program.n_results), list(n_columns));
        all.push(source!(format!("row_rule-{name}"), row_rule, inputs, results, columns, 64, 64, program));
    }
    for standardized in [None, Some(([1, 2], 1e-8f32.to_bits()))] {
        let form = LossForm { n_groups: 2, standardized };
        let name = format!("row_loss-{}", standardized.is_some());
        let (inputs, slopes) = ((0..3).map(|_| t()).collect(), (0..2).map(|_| t()).collect());
        all.push(source!(name, row_loss, inputs, slopes, t(), 64, every_node_of_a_loss(), form));
    }
    for n in [1, 12] {
        let parts = || (0..n).map(|_| t()).collect();
        all.push(source!(format!("concat-{n}"), concat, parts(), t(), 3, 64));
        all.push(source!(format!("split-{n}"), split, t(), parts(), 3, 64));
    }
    for n in [1, 8] {
        let parts = || (0..n).map(|_| t()).collect();
        all.push(source!(format!("assign-{n}"), assign, parts(), parts(), (0..n).collect()));
    }
    let (inputs, outputs) = ((0..3).map(|_| t()).collect(), (0..2).map(|_| t()).collect());
    let numbers = [0.5, 2.0].into_iter().collect();
    all.push(source!("elementwise", elementwise, inputs, outputs, numbers, 64, 64, every_node()));
    for (first_version, with_edge) in [(false, false), (false, true), (true, false), (true, true)] {
        let form = Form { first_version, with_edge };
        let name = |kernel: &str| format!("{kernel}-{first_version}-{with_edge}");
        let forward = name("attention_forward");
        all.push(source!(forward, attention_forward, t(), t(), t(), t(), t(), t(), t(), t(), t(), 0.2, form));
        let scores = name("attention_scores_backward");
        all.push(source!(
            scores,
            attention_scores_backward,
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            0.2,
            form
        ));
        let values = name("attention_values_backward");
        all.push(source!(
            values,
            attention_values_backward,
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            t(),
            0.2,
            form
        ));
    }
    for shared in [false, true] {
        let activations = vec![Some(Activation::Tanh), Some(Activation::Elu), None];
        let form =
            || super::mlp::Form { widths: vec![7, 64, 33, 1], activations: activations.clone(), block: 8, shared };
        let list = |n: usize| (0..n).map(|_| t()).collect();
        for keeps in [false, true] {
            let results = list(if keeps { 3 } else { 1 });
            let name = format!("mlp_forward-{shared}-{keeps}");
            all.push(source!(name, mlp_forward, t(), list(3), list(3), results, 64, form(), keeps));
        }
        for (of_params, of_x) in [(true, false), (true, true), (false, true)] {
            let deltas = list(3 * usize::from(of_params) + usize::from(of_x));
            let name = format!("mlp_deltas-{shared}-{of_params}-{of_x}");
            all.push(source!(name, mlp_deltas, t(), list(3), list(3), deltas, 64, 2, form(), of_params, of_x));
        }
        let name = format!("mlp_gradients-{shared}");
        all.push(source!(name, mlp_gradients, t(), list(2), list(3), list(6), 64, 2, form()));
    }
    for a in [None, Some(Activation::Tanh), Some(Activation::Relu), Some(Activation::Elu)] {
        let name = a.map_or("none".to_owned(), |a| format!("{a:?}").to_lowercase());
        let (forward, backward) = (format!("layer_norm_forward-{name}"), format!("layer_norm_backward-{name}"));
        all.push(source!(forward, layer_norm_forward, t(), t(), t(), t(), t(), 1e-5, a));
        all.push(source!(backward, layer_norm_backward, t(), t(), t(), t(), t(), t(), t(), a));
        for padded in [false, true] {
            let v = || view(padded);
            let variant = format!("activation_backward-{name}-{padded}");
            all.push(source!(variant, activation_backward, v(), v(), view(false), a));
            for with_bias in [false, true] {
                let variant = format!("activation_forward-{name}-{padded}-{with_bias}");
                all.push(source!(variant, activation_forward, v(), bias(), view(false), a, with_bias));
            }
        }
    }
    all
}

/// Formulas with every kind of input and every operation.
fn every_node() -> Program {
    let rows = [Rows::One, Rows::Each, Rows::Groups(4), Rows::Cycle(4)];
    let parts = rows.map(|rows| Part { input: 0, rows, first: 3, end: 9 });
    let loads =
        parts.iter().flat_map(|part| [false, true].map(|by_column| Node::Load(Load { part: *part, by_column })));
    let part = Part { input: 1, rows: Rows::Each, first: 2, end: 9 };
    let sums = [Node::Sum(part), Node::Max(part), Node::SumBefore(part), Node::SumAfter(part), Node::Rank(part)];
    let picks = [
        Node::Pick { part, index: 0 },
        Node::Find { part, value: 0 },
        Node::Count { part, value: 0 },
        Node::SumWhere { part, keys: part, value: 0 },
    ];
    let operations = [
        Operation::Add,
        Operation::Subtract,
        Operation::Multiply,
        Operation::Divide,
        Operation::Minimum,
        Operation::Maximum,
        Operation::Greater,
        Operation::GreaterEqual,
        Operation::Equal,
        Operation::Select,
        Operation::Negate,
        Operation::Abs,
        Operation::Sqrt,
        Operation::Sin,
        Operation::Cos,
        Operation::Exp,
        Operation::Ln,
        Operation::Tanh,
        Operation::Floor,
    ];
    let constant = Node::Constant(0.1f32.to_bits());
    let mut nodes: Vec<Node> =
        loads.chain(sums).chain(picks).chain([constant, Node::Given(0), Node::Given(1)]).collect();
    for operation in operations {
        // With the last three values, so that nothing is left out.
        let [a, b, c] = [1, 2, 3].map(|back| nodes.len() - back);
        nodes.push(Node::Step(operation, [a, b, c]));
    }
    let outputs = vec![(0..nodes.len()).collect(), vec![nodes.len() - 1]];
    Program { nodes, outputs }
}

/// A loss with every operation of one, of three columns, with derivatives by two of them.
fn every_node_of_a_loss() -> Program {
    let loads = [0, 1, 2].map(|input| {
        let rows = [Rows::Each, Rows::Cycle(4), Rows::One][input];
        Node::Load(Load { part: Part { input, rows, first: 0, end: 1 }, by_column: false })
    });
    let mut nodes = loads.to_vec();
    nodes.push(Node::Constant(0.1f32.to_bits()));
    for operation in [
        Operation::Add,
        Operation::Subtract,
        Operation::Multiply,
        Operation::Divide,
        Operation::Greater,
        Operation::Equal,
        Operation::Select,
        Operation::Negate,
        Operation::Sqrt,
        Operation::Exp,
        Operation::Ln,
    ] {
        let [a, b, c] = [1, 2, 3].map(|back| nodes.len() - back);
        nodes.push(Node::Step(operation, [a, b, c]));
    }
    let last = nodes.len() - 1;
    Program { nodes, outputs: vec![vec![last - 1], vec![last - 2], vec![last, last - 3]] }
}

fn translated(kernel: &dyn CubeKernel) -> String {
    let features = CppSupportedFeatures {
        grid_constants: true,
        fast_math: true,
        fast_tanh: true,
        dp4a: true,
        ..CppSupportedFeatures::default()
    };
    let options = CompilationOptions { supports_features: features, ..CompilationOptions::default() };
    let definition = define_kernel(kernel).expect("the kernel can be expanded");
    let source = CppCompiler::<Cuda>::default().compile(definition, &options);
    source.expect("the kernel can be translated").to_string()
}

/// A tensor that no memory stands behind: only its rank and the order of its strides reach the translation.
fn binding(shape: [usize; 2], strides: [usize; 2]) -> TensorBinding {
    let service = ServiceId::of::<()>(DeviceId::new(0, 0));
    let handle = Handle::new(service, StreamId::current(), 4 * (shape[0] * strides[0]) as u64);
    // SAFETY: the tensor is never launched, and its strides stay inside of its size.
    #[allow(unsafe_code, reason = "the only constructor without a device")]
    unsafe {
        TensorBinding::from_raw_parts(handle, Strides::new(&strides), Shape::from(shape))
    }
}

fn t() -> TensorArg {
    binding([64, 64], [64, 1]).into_tensor_arg()
}

fn view(padded: bool) -> LinearViewLaunch {
    linear_view(binding([64, 60], [if padded { 64 } else { 60 }, 1]))
}

/// One row that is repeated.
fn bias() -> LinearViewLaunch {
    super::cubecl::std::tensor::layout::linear::linear_view_with_reference(
        binding([1, 60], [60, 1]),
        binding([64, 60], [60, 1]),
    )
}

/// What the translation asks of a device; the values are those of every NVIDIA GPU from compute capability 7.5 on.
fn properties() -> Arc<DeviceProperties> {
    let hardware = HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: 32,
        plane_size_max: 32,
        max_bindings: 1024,
        max_shared_memory_size: 48 << 10,
        max_cube_count: (u32::MAX >> 1, 65535, 65535),
        max_units_per_cube: 1024,
        max_cube_dim: (1024, 1024, 64),
        num_streaming_multiprocessors: Some(1),
        num_cpu_cores: None,
        last_level_cache_size: None,
        num_tensor_cores: None,
        min_tensor_cores_dim: None,
        max_vector_size: 4,
        cube_mma_reserved_shared_memory: 0,
    };
    let identity = DeviceIdentity { name: "none".into(), fingerprint: "none".into(), physical: None };
    let memory = MemoryDeviceProperties::new(1 << 30, 512);
    let mut properties = DeviceProperties::new(Default::default(), memory, hardware, TimingMethod::Device, identity);
    register_supported_types(&mut properties);
    Arc::new(properties)
}

fn target() -> Arc<TargetProperties> {
    Arc::new(TargetProperties {
        mma: MmaProperties {
            register_size_bits: 32,
            const_plane_size: 32,
            register_layout_a: MatrixLayout::RowMajor,
            register_layout_b: MatrixLayout::ColMajor,
            register_layout_acc: MatrixLayout::RowMajor,
            register_duplication_a: 1,
            register_duplication_b: 1,
            register_duplication_acc: 1,
            contiguous_elements: ContiguousElements::new(|_, _, _| 2),
        },
    })
}
