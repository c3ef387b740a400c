//! Readers of floor plans survive broken files: no panic, no endless loop, no memory without end.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;

use brasa_floorplan::{FloorPlanError, Layout};
use brasa_test::{memory::Counting, mutate::hold_reader};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// Files of each reader where nobody asks for a million.
const FEW: u64 = 3000;

fn plan(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "plans", name].iter().collect();
    std::fs::read(path).unwrap()
}

/// Files come as UTF-8; what is none is refused before a reader of text gets it.
fn hold(reader: &str, files: &[Vec<u8>], read: impl Fn(&str) -> Result<Layout, FloorPlanError>) {
    hold_bytes(reader, files, |bytes| read(&String::from_utf8_lossy(bytes)));
}

fn hold_bytes(reader: &str, files: &[Vec<u8>], read: impl Fn(&[u8]) -> Result<Layout, FloorPlanError>) {
    let mut n = 0;
    hold_reader(reader, files, &MEMORY, FEW, |bytes| {
        read(bytes).map(|layout| {
            n += 1;
            // What is accepted can be used.
            layout.validate().unwrap();
            assert!(!layout.nodes.iter().any(|node| node.name.contains(char::is_control)));
            if n % 8 == 0 {
                assert_eq!(Layout::from_json(&layout.to_json(), "again").unwrap(), layout);
                assert_eq!(layout.drawing().ways.len(), layout.edges.len());
            }
        })
    });
}

#[test]
fn brasa_json() {
    let files = [plan("hut.json"), Layout::office().to_json().into_bytes()];
    hold("Brasa JSON", &files, |text| Layout::from_json(text, "text"));
}

#[test]
fn geojson() {
    hold("GeoJSON", &[plan("kiosk.geojson"), plan("clinic.geojson"), plan("station.geojson")], |text| {
        Layout::from_geojson("plan", &[("text", text)])
    });
}

#[test]
fn imdf() {
    let texts = ["clinic/level.geojson", "clinic/unit.geojson", "clinic/opening.geojson"]
        .map(|name| String::from_utf8(plan(name)).unwrap());
    // One of the three is changed; which one it was is seen by its own words.
    let files = texts.clone().map(String::into_bytes);
    let place = |text: &str| match () {
        () if text.contains("ordinal") && text.len() < 2500 => 0,
        () if text.matches("Polygon").count() > text.matches("LineString").count() => 1,
        () => 2,
    };
    hold("IMDF", &files, |text| {
        let mut set = texts.each_ref().map(|text| ("text", text.as_str()));
        set[place(text)].1 = text;
        Layout::from_geojson("clinic", &set)
    });
}

#[test]
fn wkt() {
    hold("WKT", &[plan("gallery.wkt"), plan("rooms.wkt")], |text| Layout::from_wkt("plan", text, "text"));
}

#[test]
fn archives() {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for file in ["level.geojson", "unit.geojson", "opening.geojson"] {
        zip.start_file(file, SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)).unwrap();
        zip.write_all(&plan(&format!("clinic/{file}"))).unwrap();
    }
    let files = [zip.finish().unwrap().into_inner()];
    hold_bytes("IMDF in an archive", &files, |bytes| Layout::from_bytes("clinic", bytes.to_vec(), "clinic.zip"));
}
