//! Policies and archives that would panic, or take all memory, are errors.

use std::io::{Cursor, Write};

use brasa_export::{About, Archive, ExportedPolicy, Groups, Layer, Output};

fn error_of(layers: Vec<Layer>, output: Output) -> String {
    let policy = ExportedPolicy { obs_width: 2, n_agents: 1, masked: false, layers, output, about: About::default() };
    policy.validate().expect_err("it is no policy").to_string()
}

#[test]
fn layers_that_would_panic_are_errors() {
    let linear = |outputs, n, n_bias| Layer::Linear { outputs, weight: vec![0.0; n], bias: vec![0.0; n_bias] };
    let normalize = |clip| Layer::Normalize { mean: vec![0.0; 2], deviation: vec![1.0; 2], clip };
    let clip = |low, high| Layer::Clip { low: vec![low; 2], high: vec![high; 2] };
    for (layer, part) in [
        (linear(0, 0, 0), "`outputs` must be at least 1"),
        (linear(usize::MAX, 0, 0), "too many weights"),
        (linear(3, 5, 3), "`weight` must have 6 numbers"),
        (normalize(-1.0), "`clip` must be finite and at least 0, got -1"),
        (normalize(f32::NAN), "got NaN"),
        (normalize(f32::INFINITY), "got inf"),
        (clip(1.0, -1.0), "`low` must be at most `high`, got 1 and -1"),
        (clip(f32::NAN, 1.0), "got NaN and 1"),
        (Layer::Groups(Groups { width: 0, columns: vec![], layers: vec![] }), "`columns`"),
        (Layer::Groups(Groups { width: 1, columns: vec![5], layers: vec![] }), "`columns` must be below 2"),
    ] {
        let error = error_of(vec![layer], Output::Real);
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
    for heads in [vec![0, 2], vec![usize::MAX, 3], vec![1], vec![]] {
        assert!(error_of(Vec::new(), Output::Choice { heads }).contains("must have 2 actions together"));
    }
}

/// Zeros are compressed to a thousandth of their size, and entries can share one body.
#[test]
fn an_archive_is_not_a_thousand_times_its_size() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for i in 0..220 {
        zip.start_file(format!("{i}"), options).expect("it is a new name");
        zip.write_all(&vec![0; 1 << 20]).expect("there is room");
    }
    let bytes = zip.finish().expect("it is whole").into_inner();
    assert!(bytes.len() < 1 << 18);
    let mut archive = Archive::new(Cursor::new(bytes)).expect("it is an archive");
    let read = (0..220).map(|i| archive.read(&i.to_string())).collect::<Result<Vec<_>, _>>();
    let error = read.expect_err("it takes too much").to_string();
    assert!(error.contains("its content takes more than"), "{error}");
}

#[test]
fn agents_with_different_layers_have_no_policy_together() {
    let of = |layers: Vec<Layer>| ExportedPolicy {
        obs_width: 2,
        n_agents: 1,
        masked: false,
        layers,
        output: Output::Real,
        about: About::default(),
    };
    let linear = |outputs: usize| Layer::linear(vec![0.5; 2 * outputs], vec![1.0; outputs]);
    let clip = |high: f32| Layer::Clip { low: vec![-1.0; 2], high: vec![high; 2] };
    let joined = |a: &ExportedPolicy, b: &ExportedPolicy| ExportedPolicy::of_agents([a, b]);
    let plain = of(vec![linear(2), clip(1.0)]);
    let both = joined(&plain, &plain).expect("they are equal");
    assert!(both.n_agents == 2 && both.validate().is_ok());
    for other in [of(vec![linear(2), clip(2.0)]), of(vec![linear(3), clip(1.0)]), of(vec![linear(2)]), both] {
        assert!(joined(&plain, &other).is_none(), "{other:?}");
    }
    assert!(ExportedPolicy::of_agents([]).is_none());
}
