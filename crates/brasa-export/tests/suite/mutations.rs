//! Every reader returns an error or a policy that every format accepts, whatever the bytes: nothing panics.
#![allow(clippy::expect_used)]

use crate::common;

use std::io::{Cursor, Read, Write};
use std::path::Path;

use brasa_export::{Archive, Budget, ExportedPolicy, JsModule, StateDict};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

fn recorded(file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stable_baselines3");
    std::fs::read(folder.join(file)).expect("it was recorded")
}

/// Fixed numbers that look random.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// `bytes` with a few changes.
    fn changed(&mut self, bytes: &[u8]) -> Vec<u8> {
        const VALUES: [u8; 10] = [0, 1, 2, 0x7f, 0x80, 0xff, b'0', b'-', b'9', b'K'];
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = VALUES[self.below(VALUES.len())],
                2 => drop(bytes.remove(at)),
                3 => bytes.insert(at, VALUES[self.below(VALUES.len())]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes
    }
}

/// Everything that can be done with a policy that was read.
fn use_all(policy: &ExportedPolicy) {
    policy.validate().expect("a reader validates");
    assert!(policy.obs_width * policy.n_agents <= 1 << 20, "the files are small");
    let n_rows = policy.n_agents;
    for value in [0.0, 1.0, f32::NAN, f32::INFINITY] {
        let mask = (policy.n_actions() > 0).then(|| vec![value; n_rows * policy.n_actions()]);
        let actions = policy.act(&vec![value; n_rows * policy.obs_width], mask.as_deref());
        assert_eq!(actions.len(), n_rows * policy.action_width());
    }
    policy.to_onnx().expect("it is valid");
    policy.to_c("policy").expect("it is valid");
    policy.to_js("policy", JsModule::Es).expect("it is valid");
    let again = ExportedPolicy::from_safetensors(&policy.to_safetensors()).expect("it was just written");
    assert_eq!(again.obs_width, policy.obs_width);
}

fn zipped(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).expect("a file");
        writer.write_all(bytes).expect("in memory");
    }
    writer.finish().expect("in memory").into_inner()
}

/// All entries of an archive.
fn entries(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let n = archive.len();
    let entry = |i| {
        let mut entry = archive.by_index(i).expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("in memory");
        (entry.name().expect("a text").into_owned(), bytes)
    };
    (0..n).map(entry).collect()
}

/// The archive with its entry `changed` replaced.
fn replaced(all: &[(String, Vec<u8>)], changed: &str, bytes: &[u8]) -> Vec<u8> {
    let parts: Vec<(&str, &[u8])> =
        all.iter().map(|(name, own)| (name.as_str(), if name == changed { bytes } else { &own[..] })).collect();
    zipped(&parts, CompressionMethod::Stored)
}

const MODELS: [&str; 8] = ["ppo", "ppo_choices", "ppo_relu", "a2c_sde", "sac", "sac_sde", "td3", "dqn"];

#[test]
fn models_of_stable_baselines3() {
    let mut noise = Noise(1);
    for name in MODELS {
        let bytes = recorded(&format!("{name}.zip"));
        let all = entries(&bytes);
        let get = |name: &str| &all.iter().find(|(entry, _)| entry == name).expect("an entry").1;
        let tensors = entries(get("policy.pth"));
        let (program, pickle) = tensors.iter().find(|(name, _)| name.ends_with("data.pkl")).expect("a pickle");
        let mut n_read = 0;
        for _ in 0..250 {
            for changed in [
                noise.changed(&bytes),
                replaced(&all, "data", &noise.changed(get("data"))),
                replaced(&all, "policy.pth", &replaced(&tensors, program, &noise.changed(pickle))),
            ] {
                if let Ok(policy) = ExportedPolicy::from_stable_baselines3(&changed) {
                    use_all(&policy);
                    n_read += 1;
                }
            }
        }
        assert!(n_read > 20, "{name}: changes that do not matter must be read, {n_read} were");
    }
}

#[test]
fn statistics_of_vec_normalize() {
    let mut noise = Noise(2);
    let statistics = recorded("ppo_normalized.pkl");
    let policy = ExportedPolicy::from_stable_baselines3(&recorded("ppo_normalized.zip")).expect("it is a model");
    for _ in 0..1000 {
        if let Ok(policy) = policy.clone().with_vec_normalize(&noise.changed(&statistics)) {
            use_all(&policy);
        }
    }
}

/// Also whole words of the description: numbers that are 0, huge or negative.
#[test]
fn exported_policies() {
    let mut noise = Noise(3);
    for (name, policy) in common::policies().into_iter().chain(common::memory_policies()) {
        let bytes = policy.to_safetensors();
        let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
        let (head, data) = bytes[8..].split_at(length);
        let head = String::from_utf8(head.to_vec()).expect("JSON");
        let mut n_read = 0;
        for _ in 0..150 {
            let text = noise.changed(head.as_bytes());
            let mut number = head.clone();
            let digits: Vec<usize> = head.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
            let at = digits[noise.below(digits.len())];
            let other = ["0", "1", "-1", "2", "7", "16777217", "9007199254740993", "18446744073709551615", "1e39"];
            number.replace_range(at..=at, other[noise.below(other.len())]);
            for changed in [text, number.into_bytes()] {
                let file = [&(changed.len() as u64).to_le_bytes()[..], &changed, data].concat();
                if let Ok(policy) = ExportedPolicy::from_safetensors(&file) {
                    use_all(&policy);
                    n_read += 1;
                }
            }
            // Numbers that are indices, infinite or NaN.
            let mut numbers = data.to_vec();
            let at = 4 * noise.below(numbers.len() / 4);
            let value = [f32::NAN, f32::INFINITY, -1.0, 0.0, 1e30, 0.5, 3.0][noise.below(7)];
            numbers[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let file = [&bytes[..8], head.as_bytes(), &numbers].concat();
            if let Ok(policy) = ExportedPolicy::from_safetensors(&file) {
                use_all(&policy);
            }
        }
        assert!(n_read > 5, "{name}: {n_read}");
    }
}

#[test]
fn tensors_of_both_forms() {
    let mut noise = Noise(4);
    let zip = entries(&recorded("ppo.zip")).into_iter().find(|(name, _)| name == "policy.pth").expect("an entry").1;
    // Before PyTorch 1.6: a tensor of four numbers.
    let content = b"\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0aX\x03\0\0\0cpuK\x04tQK\0K\x02K\x02\x86K\x02K\x01\x86tRs.";
    let first = b"\x80\x02K\0.\x80\x02K\0.\x80\x02K\0.";
    let pickles = [&first[..], content, b"\x80\x02]X\x01\0\0\0aa.", &4u64.to_le_bytes(), &[0; 16]].concat();
    assert_eq!(StateDict::read(&pickles).expect("it is complete").get("a").expect("it has a tensor").shape, [2, 2]);
    for bytes in [zip, pickles] {
        for _ in 0..1500 {
            let Ok(state) = StateDict::read(&noise.changed(&bytes)) else { continue };
            for weights in &state.0 {
                assert_eq!(weights.shape.iter().product::<usize>(), weights.values.len());
            }
            drop(state.to_safetensors());
        }
    }
}

/// A small file of a large one in a small one: the budget is that of the outermost file.
#[test]
fn archives_within_archives_share_a_budget() {
    let zeros = vec![0; 60 << 20];
    let inner = zipped(
        &[("a/data.pkl", b"\x80\x02}."), ("a/data/0", &zeros), ("a/data/1", &zeros)],
        CompressionMethod::Deflated,
    );
    let model = zipped(&[("data", b"{}"), ("policy.pth", &inner)], CompressionMethod::Deflated);
    assert!(model.len() < 1 << 18);
    let error = ExportedPolicy::from_stable_baselines3(&model).expect_err("it takes too much").to_string();
    assert!(error.contains("its content takes more than"), "{error}");
    // By itself, the inner archive is larger.
    let error = StateDict::read(&inner).expect_err("it has no tensors").to_string();
    assert!(error.contains("its content takes more than") || error.contains("no tensors"), "{error}");
    // 30 million values.
    let document = format!("[{}0]", "0,".repeat(30_000_000));
    let model = zipped(&[("data", document.as_bytes()), ("policy.pth", b"")], CompressionMethod::Deflated);
    let error = ExportedPolicy::from_stable_baselines3(&model).expect_err("it takes too much").to_string();
    assert!(error.contains("`data`") && error.contains("its content takes more than"), "{error}");
    assert!(Budget::of(100).json(b"{\"a\": [1, 2]}").is_ok());
    let mut archive = Archive::new(Cursor::new(&model)).expect("an archive");
    archive.read("data").expect("it is not too much");
    archive.read("data").expect_err("twice is");
}
