//! Writing to the path of a user: what is there stays what it is.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use brasa_train::{OutputFile, is_standard_output, write_output};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_and_keeps_its_mode() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("policy.onnx");
    write_output(&path, b"first").expect("the name is free");
    for kept in [0o600, 0o664, 0o755] {
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).expect("it is ours");
        write_output(&path, b"second").expect("it can be replaced");
        assert_eq!((fs::read(&path).expect("it is there"), mode(&path)), (b"second".to_vec(), kept));
    }
    // A file that the user calls like a temporary one is left alone.
    fs::write(folder.path().join("policy.onnx.tmp"), "mine").expect("there is room");
    write_output(&path, b"third").expect("it can be replaced");
    assert_eq!(names(folder.path()), ["policy.onnx", "policy.onnx.tmp"]);
}

#[test]
fn a_link_is_followed_and_stays() {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("data")).expect("there is room");
    fs::write(at("data/real"), "old").expect("there is room");
    symlink("data/real", at("link")).expect("links are supported");
    symlink("link", at("second")).expect("links are supported");
    symlink("data/new", at("dangling")).expect("links are supported");
    for (name, target) in [("link", "data/real"), ("second", "data/real"), ("dangling", "data/new")] {
        write_output(&at(name), name.as_bytes()).expect("its target can be written");
        assert!(at(name).is_symlink(), "{name} stays a link");
        assert_eq!(fs::read(at(target)).expect("it is there"), name.as_bytes());
    }
    symlink("loop", at("loop")).expect("links are supported");
    write_output(&at("loop"), b"x").expect_err("it ends nowhere");
    assert_eq!(names(&at("data")), ["new", "real"]);
}

#[test]
fn pipes_and_devices_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("there is room");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is `mkfifo`").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut text = String::new();
            fs::File::open(pipe).expect("it is a pipe").read_to_string(&mut text).expect("text");
            text
        }
    });
    write_output(&pipe, b"through").expect("there is a reader");
    assert_eq!(reader.join().expect("it reads"), "through");
    assert!(fs::metadata(&pipe).expect("it is there").file_type().is_fifo());

    write_output(Path::new("/dev/null"), b"nothing").expect("it takes everything");
    assert!(fs::metadata("/dev/null").expect("it is there").file_type().is_char_device());
    if Path::new("/dev/full").exists() {
        let error = write_output(Path::new("/dev/full"), b"x").expect_err("it is always full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    let error = |path: &Path| write_output(path, b"x").expect_err("it cannot be written").kind();
    assert_eq!(error(&at("nowhere/file")), ErrorKind::NotFound);
    assert_eq!(error(folder.path()), ErrorKind::IsADirectory);
    error(Path::new(""));
    error(Path::new(".."));
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn standard_output_has_several_names() {
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(is_standard_output(Path::new(name)), "{name}");
    }
    assert!(!is_standard_output(Path::new("./-")));
}

#[test]
fn a_file_that_grows_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real"), "old").expect("there is room");
    fs::set_permissions(at("real"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("real", at("link")).expect("links are supported");
    for name in ["link", "new"] {
        let mut file = OutputFile::create(&at(name)).expect("it can be made");
        file.write_all(b"0 and more").expect("there is room");
        file.seek(SeekFrom::Start(0)).expect("it can be sought");
        file.write_all(b"1").expect("there is room");
        assert_eq!(fs::read(at("real")).expect("it is there"), b"old");
        assert_eq!(names(folder.path()), ["link", "real"], "nothing is left if the process ends now");
        file.publish().expect("it can be written");
        assert_eq!(fs::read(at(name)).expect("it is there"), b"1 and more");
        if name == "link" {
            assert!(at(name).is_symlink() && mode(&at("real")) == 0o600);
            fs::write(at("real"), "old").expect("there is room");
        }
    }
    drop(OutputFile::create(&at("dropped")).expect("it can be made"));
    assert_eq!(names(folder.path()), ["link", "new", "real"]);
    let error = |path: &Path| OutputFile::create(path).expect_err("it cannot be made").kind();
    assert_eq!((error(&at("nowhere/file")), error(folder.path())), (ErrorKind::NotFound, ErrorKind::IsADirectory));
}
