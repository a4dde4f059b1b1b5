//! Copies from a source to a target, with streams that hand bytes over in pieces of any length.

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use linerate_kernel::directory::Directory;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::transfer::{Medium, StageRecord};
use linerate_model::units::{Bytes, Nanos};
use linerate_storage::transfer::frame::{HEADER, Header, Kind, digest};
use linerate_storage::transfer::{Access, Filled, Inlet, Outlet, PIECE, Source, Target};
use linerate_testing::{Need, skipped};

/// A copy that has not ended by then never does.
const PATIENCE: Nanos = Nanos::from_millis(120_000);

fn wait(fd: std::os::fd::BorrowedFd<'_>) {
    let mut entries = [PollEntry::new(fd, Interest::READ)];
    let ready = poll::wait(&mut entries, Some(PATIENCE)).unwrap();
    assert!(ready > 0, "nothing came in {PATIENCE}");
}

fn into(folder: &Path, access: Access, nameless: bool) -> Target {
    let opened = Directory::open(folder).unwrap();
    Target::in_folder(opened, folder, access, nameless).unwrap()
}

/// On a disk where the build is, and not in the memory that `/tmp` may be.
fn in_build_folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// One file of so many bytes that are made.
fn of_memory(bytes: u64) -> Source {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    let source = Source::of_files(file.path(), Access::Buffered).unwrap();
    source.in_memory().unwrap()
}

/// A stream: what ended it early.
fn carry(mut outlet: Outlet, mut inlet: Inlet, mut step: usize) -> Result<(), String> {
    loop {
        match outlet.fill().map_err(|error| error.to_string())? {
            Filled::NotYet => wait(outlet.fd()),
            Filled::End => return inlet.ended().map_err(|error| error.to_string()),
            Filled::Bytes => {
                let room = loop {
                    match inlet.room().map_err(|error| error.to_string())? {
                        // The borrow checker does not see that the loop ends with the room.
                        Some(room) => break room.len(),
                        None => wait(inlet.fd()),
                    }
                };
                let bytes = outlet.bytes();
                let length = bytes.len().min(room).min(step);
                let some = bytes[..length].to_vec();
                inlet.room().unwrap().unwrap()[..length].copy_from_slice(&some);
                outlet.sent(length);
                inlet.received(length).map_err(|error| error.to_string())?;
                step = step * 7 % 400_009 + 1;
            }
        }
    }
}

/// Copies over `streams`; the records of both ends, and why streams ended early.
fn copy(
    source: &Source,
    target: &Target,
    streams: usize,
) -> (StageRecord, StageRecord, Vec<String>) {
    let ends: Vec<_> = (0..streams)
        .map(|_| (source.outlet(), target.inlet()))
        .collect();
    source.start();
    target.start();
    let threads: Vec<_> = (0..)
        .zip(ends)
        .map(|(number, (outlet, inlet))| {
            std::thread::spawn(move || carry(outlet, inlet, 1000 + number))
        })
        .collect();
    let ended = threads
        .into_iter()
        .filter_map(|thread| thread.join().unwrap().err());
    let ended = ended.collect();
    wait(target.finished_fd().as_fd());
    source.stop();
    target.stop();
    (source.record(), target.record(), ended)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at * 31 + at / 251) % 251).unwrap())
        .collect()
}

#[test]
fn files_of_all_lengths_arrive_equal() {
    for access in [Access::Direct, Access::Buffered] {
        for length in [0, 1, 4096, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE / 2] {
            let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let path = from.path().join("file");
            fs::write(&path, bytes(length)).unwrap();
            let source = Source::of_files(&path, access).unwrap();
            let target = into(to.path(), access, false);
            assert_eq!(source.bytes(), Bytes(length as u64));
            let (read, written, ended) = copy(&source, &target, 2);
            assert_eq!(ended, Vec::<String>::new());
            assert!(
                fs::read(to.path().join("file")).unwrap() == bytes(length),
                "{length}"
            );
            assert_eq!(read.checksum, written.checksum);
            assert_eq!((written.bytes, written.files), (Bytes(length as u64), 1));
            assert_eq!((written.error, read.error), (None, None));
            assert!(written.on_disk.unwrap() >= written.handed_over);
        }
    }
}

#[test]
fn a_tree_arrives_with_its_folders_names_and_modes() {
    use std::os::unix::fs::PermissionsExt as _;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = from.path().join("tree");
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::create_dir_all(top.join("empty")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"\xff odd\n");
    fs::write(top.join(odd), "odd").unwrap();
    fs::write(top.join("a/b/big"), bytes(3 * PIECE + 17)).unwrap();
    for number in 0..2000 {
        fs::write(top.join(format!("a/{number}")), number.to_string()).unwrap();
    }
    for (name, mode) in [("a/7", 0o751), ("a", 0o550), ("a/b", 0o700)] {
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
    let source = Source::of_files(&top, Access::Direct).unwrap();
    let target = into(to.path(), Access::Direct, false);
    let (read, written, ended) = copy(&source, &target, 4);
    assert_eq!(ended, Vec::<String>::new());
    assert_eq!((written.error, read.left_out), (None, 1));
    assert_eq!((read.files, written.files), (2002, 2002));
    assert_eq!(read.checksum, written.checksum);
    let copied = to.path().join("tree");
    assert_eq!(fs::read(copied.join(odd)).unwrap(), b"odd");
    assert!(fs::read(copied.join("a/b/big")).unwrap() == bytes(3 * PIECE + 17));
    assert_eq!(fs::read_to_string(copied.join("a/1999")).unwrap(), "1999");
    assert!(copied.join("empty").is_dir() && !copied.join("link").exists());
    for (name, mode) in [
        ("a/7", 0o751),
        ("a", 0o750),
        ("a/b", 0o700),
        ("empty", 0o755),
    ] {
        let facts = fs::metadata(copied.join(name)).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, mode, "{name}");
    }
    // So that it can be removed.
    fs::set_permissions(top.join("a"), fs::Permissions::from_mode(0o750)).unwrap();
}

#[test]
fn folders_of_the_target_keep_their_modes() {
    use std::os::unix::fs::PermissionsExt as _;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [top, there] = [&from, &to].map(|folder| folder.path().join("tree"));
    for (folder, mode) in [(&top, 0o777), (&there, 0o711)] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(top.join("file"), "new").unwrap();
    let source = Source::of_files(&top, Access::Direct).unwrap();
    let (_, written, _) = copy(&source, &into(to.path(), Access::Direct, false), 1);
    assert_eq!((written.error, written.files), (None, 1));
    let mode = fs::metadata(&there).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o711);
}

#[test]
fn more_folders_than_are_kept_open_arrive() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..600 {
        let folder = from.path().join(format!("{}/{number}", number % 7));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), number.to_string()).unwrap();
    }
    let source = Source::of_files(from.path(), Access::Direct).unwrap();
    let (_, written, ended) = copy(&source, &into(to.path(), Access::Direct, false), 4);
    assert_eq!((written.error, written.files), (None, 600));
    assert_eq!(ended, Vec::<String>::new());
    let top = to.path().join(from.path().file_name().unwrap());
    for number in 0..600 {
        let file = top.join(format!("{}/{number}/file", number % 7));
        assert_eq!(fs::read_to_string(file).unwrap(), number.to_string());
    }
}

#[test]
fn what_is_there_stays_as_it_is() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("file"), "new").unwrap();
    fs::write(to.path().join("file"), "old").unwrap();
    let source = Source::of_files(&from.path().join("file"), Access::Direct).unwrap();
    let target = into(to.path(), Access::Direct, false);
    let (_, written, _) = copy(&source, &target, 1);
    assert!(written.error.unwrap().contains("exists"));
    assert_eq!(fs::read_to_string(to.path().join("file")).unwrap(), "old");
}

#[test]
fn files_without_names_leave_nothing() {
    let to = tempfile::tempdir().unwrap();
    let source = of_memory(3 << 20);
    let target = into(to.path(), Access::Direct, true);
    let (read, written, ended) = copy(&source, &target, 2);
    assert_eq!(ended, Vec::<String>::new());
    assert_eq!((written.bytes, written.error), (Bytes(3 << 20), None));
    assert_eq!(read.checksum, written.checksum);
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    assert!(matches!(written.medium, Medium::Disk(_)) && read.medium == Medium::Memory);
}

#[test]
fn small_files_without_names_reach_the_disk() {
    let (from, to) = (tempfile::tempdir().unwrap(), in_build_folder());
    for number in 0..200 {
        fs::write(from.path().join(number.to_string()), bytes(100_000)).unwrap();
    }
    let source = Source::of_files(from.path(), Access::Direct).unwrap();
    let target = into(to.path(), Access::Direct, true);
    let (_, written, ended) = copy(&source, &target, 2);
    assert_eq!(ended, Vec::<String>::new());
    assert_eq!((written.files, written.error.clone()), (200, None));
    let Medium::Disk(place) = &written.medium else {
        panic!("{written:?}");
    };
    assert!(!place.direct, "files of less than a piece");
    match place.device_bytes {
        Some(device) => assert!(device >= written.bytes, "{device:?}"),
        None => skipped(
            Need::Disk,
            "what the kernel counts of small files",
            "the build is on no block device whose writes it counts",
        ),
    }
}

#[test]
fn memory_takes_everything_and_checks_it() {
    let source = of_memory(100 << 20);
    let target = Target::in_memory().unwrap();
    let (read, written, ended) = copy(&source, &target, 3);
    assert_eq!(ended, Vec::<String>::new());
    assert_eq!((written.bytes, written.on_disk), (Bytes(100 << 20), None));
    assert_eq!(read.checksum, written.checksum);
    let times = [read.ring.empty, read.ring.full, read.ring.between];
    assert!(times.iter().any(|time| time.0 > 0), "{times:?}");
}

#[test]
fn parts_that_many_streams_receive_leave_most_of_the_ring() {
    const STREAMS: usize = 120;
    let source = of_memory(64 << 20);
    let target = Target::in_memory().unwrap();
    let mut ends: Vec<_> = (0..STREAMS)
        .map(|_| (source.outlet(), target.inlet()))
        .collect();
    source.start();
    target.start();
    // Each stream has sent a header and its name, and the network brings nothing more.
    for (outlet, inlet) in &mut ends {
        while outlet.fill().unwrap() == Filled::NotYet {
            wait(outlet.fd());
        }
        let head = HEADER + usize::from(u16::from_be_bytes([outlet.bytes()[6], outlet.bytes()[7]]));
        let mut bytes = &outlet.bytes()[..head];
        while !bytes.is_empty() {
            let room = inlet.room().unwrap().expect("room for a header");
            let length = room.len().min(bytes.len());
            room[..length].copy_from_slice(&bytes[..length]);
            inlet.received(length).unwrap();
            bytes = &bytes[length..];
        }
        assert!(inlet.room().unwrap().is_some(), "no room for a part");
    }
    let record = target.record();
    assert_eq!(record.ring.full, Nanos(0));
    assert!(source.record().piece.0 * STREAMS as u64 <= record.ring.capacity.0 / 4);
    source.stop();
    target.stop();
}

#[test]
fn a_consumer_that_does_nothing_finds_the_ring_full() {
    let source = of_memory(200 << 20);
    source.start();
    let mut outlet = source.outlet();
    // A piece is taken out, so that its readers wait behind it.
    wait(outlet.fd());
    assert_eq!(outlet.fill().unwrap(), Filled::Bytes);
    let until = std::time::Instant::now() + PATIENCE.as_duration();
    while source.record().ring.full.0 < 50_000_000 {
        assert!(
            std::time::Instant::now() < until,
            "{:?}",
            source.record().ring
        );
        std::thread::yield_now();
    }
    source.stop();
    assert!(
        source.record().bytes.0 <= 80 << 20,
        "more than the ring holds"
    );
}

#[test]
fn a_source_that_became_shorter_says_so() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, bytes(2 * PIECE)).unwrap();
    let source = Source::of_files(&path, Access::Buffered).unwrap();
    fs::write(&path, "short").unwrap();
    let target = into(to.path(), Access::Buffered, false);
    let (read, _, _) = copy(&source, &target, 1);
    assert!(read.error.unwrap().contains("became shorter"));
}

#[test]
fn a_source_that_changes_while_it_is_read_is_counted() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["grows", "stays", "is touched"] {
        fs::write(from.path().join(name), bytes(3 * PIECE)).unwrap();
    }
    let source = Source::of_files(from.path(), Access::Buffered).unwrap();
    let open = |name| {
        let mut options = fs::OpenOptions::new();
        options.append(true).open(from.path().join(name)).unwrap()
    };
    std::io::Write::write_all(&mut open("grows"), b"more").unwrap();
    open("is touched")
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    let (read, written, _) = copy(&source, &into(to.path(), Access::Buffered, false), 2);
    assert_eq!((read.changed, read.files), (2, 3));
    // What was listed is what was sent.
    assert_eq!((written.bytes, written.error), (read.bytes, None));
}

#[test]
fn a_transfer_that_breaks_leaves_whole_files_only() {
    let to = tempfile::tempdir().unwrap();
    let target = into(to.path(), Access::Buffered, false);
    let mut cut = part(1, "folder/cut", &[7; 4096]);
    // One byte more than comes.
    cut[24..32].copy_from_slice(&4097_u64.to_be_bytes());
    let stream = [part(0, "folder/whole", b"data"), cut].concat();
    give(&target, &stream).unwrap();
    wait(target.finished_fd());
    assert!(target.failed().unwrap().contains("did not arrive whole"));
    let left = fs::read_dir(to.path().join("folder")).unwrap();
    let names: Vec<_> = left.map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names, ["whole"]);
}

#[test]
fn neither_a_device_nor_nothing_is_a_source_or_target() {
    let error = Source::of_files(Path::new("/dev/null"), Access::Direct).unwrap_err();
    assert!(error.to_string().contains("neither a file nor a folder"));
    assert!(Source::of_files(Path::new("/nowhere/at/all"), Access::Direct).is_err());
}

/// Hands bytes to a target's stream as they are.
fn give(target: &Target, mut stream: &[u8]) -> Result<(), String> {
    let mut inlet = target.inlet();
    target.start();
    while !stream.is_empty() {
        let room = inlet.room().map_err(|error| error.to_string())?.unwrap();
        let length = room.len().min(stream.len());
        room[..length].copy_from_slice(&stream[..length]);
        inlet.received(length).map_err(|error| error.to_string())?;
        stream = &stream[length..];
    }
    inlet.ended().map_err(|error| error.to_string())
}

fn part(file: u32, name: &str, data: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Part,
        name: u16::try_from(name.len()).unwrap(),
        file,
        length: u32::try_from(data.len()).unwrap(),
        offset: 0,
        size: data.len() as u64,
        mode: 0o644,
        digest: digest(data),
    };
    [&header.encode()[..], name.as_bytes(), data].concat()
}

/// Why a target did not take a stream.
fn refused(stream: &[u8]) -> (String, tempfile::TempDir) {
    let to = tempfile::tempdir().unwrap();
    let inside = to.path().join("inside");
    fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(to.path(), inside.join("out")).unwrap();
    let target = into(&inside, Access::Buffered, false);
    let given = give(&target, stream);
    wait(target.finished_fd());
    let error = target.failed().or_else(|| given.err()).unwrap_or_default();
    (error, to)
}

#[test]
fn hostile_streams_are_refused_and_write_nothing_outside() {
    let wrong_digest = {
        let mut stream = part(0, "file", b"data");
        *stream.last_mut().unwrap() ^= 1;
        stream
    };
    let cut = part(0, "file", b"data")[..HEADER + 6].to_vec();
    let nameless = part(0, "", b"data");
    let twice = [part(0, "file", b"data"), part(0, "file", b"data")].concat();
    let many: Vec<u8> = (0..5000_u32)
        .flat_map(|file| {
            let mut stream = part(file, &format!("f{file}"), &[7; 4096]);
            // One byte more than comes.
            stream[24..32].copy_from_slice(&4097_u64.to_be_bytes());
            stream
        })
        .collect();
    for (stream, says) in [
        (part(0, "../evil", b"data"), "leads to another folder"),
        (part(0, "/evil", b"data"), "is empty"),
        (part(0, "a//evil", b"data"), "is empty"),
        (part(0, "out/evil", b"data"), "writing out/evil"),
        (vec![0; HEADER], "no frame"),
        (wrong_digest, "checksum"),
        (cut, "within a part"),
        (nameless, "without the file's name"),
        (twice, "writing file"),
        (many, "were begun"),
    ] {
        let (error, to) = refused(&stream);
        assert!(error.contains(says), "{says}: {error}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "{says}");
    }
    let (error, to) = refused(&part(0, "fine/file", b"data"));
    assert_eq!(error, "");
    assert_eq!(
        fs::read(to.path().join("inside/fine/file")).unwrap(),
        b"data"
    );
}
