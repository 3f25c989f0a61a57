//! The simulator itself: it does what a disk may do, and nothing that it may not.

use std::collections::BTreeSet;
use std::path::Path;

use fastrand::Rng;
use rethread_store::{Disk, DiskFile, Open};

use super::content::BLOCK;
use super::{Call, Failure, Fault, SimulatedDisk, Span};

const FILE: &str = "/folder/file.jsonl";

/// Returns a disk with a file that is durable, with its name, and the file.
fn disk_with(bytes: &[u8]) -> (SimulatedDisk, Box<dyn DiskFile>) {
    let disk = SimulatedDisk::new();
    disk.make_folder(Path::new("/folder")).unwrap();
    disk.sync_folder(Path::new("/")).unwrap();
    let file = disk.open(Path::new(FILE), Open::Append).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    disk.sync_folder(Path::new("/folder")).unwrap();
    (disk, file)
}

fn read(disk: &SimulatedDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), Open::Read).ok()?;
    let mut bytes = vec![0; file.stat().unwrap().length as usize];
    file.read_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

/// Returns everything that many crashes leave of some files.
fn outcomes(disk: &SimulatedDisk, paths: &[&str]) -> BTreeSet<Vec<Option<Vec<u8>>>> {
    let moment = disk.moment("now");
    let crashed = (0..500).map(|seed| moment.after_crash(&mut Rng::with_seed(seed)));
    crashed.map(|disk| paths.iter().map(|path| read(&disk, path)).collect()).collect()
}

#[test]
fn what_is_synced_with_its_name_survives_every_crash() {
    let (disk, _file) = disk_with(b"kept");
    assert_eq!(outcomes(&disk, &[FILE]), BTreeSet::from([vec![Some(b"kept".to_vec())]]));
}

#[test]
fn an_append_that_is_not_synced_is_lost_whole_cut_or_nuls() {
    let (disk, file) = disk_with(b"kept");
    file.append(b"more").unwrap();
    let found = outcomes(&disk, &[FILE]);
    for possible in [&b"kept"[..], b"keptmore", b"kept\0\0\0\0", b"keptm"] {
        assert!(found.contains(&vec![Some(possible.to_vec())]), "{possible:?} among {found:?}");
    }
    assert!(found.iter().flatten().flatten().all(|bytes| bytes.starts_with(b"kept")), "{found:?}");
}

#[test]
fn blocks_of_one_write_come_back_in_any_order_and_torn_between_sectors() {
    let (disk, file) = disk_with(&[]);
    file.append(&[b'x'; 3 * BLOCK]).unwrap();
    let images: BTreeSet<Vec<bool>> = outcomes(&disk, &[FILE])
        .into_iter()
        .flatten()
        .flatten()
        .filter(|bytes| bytes.len() == 3 * BLOCK)
        .map(|bytes| bytes.chunks(512).map(|sector| sector.iter().all(|&byte| byte == b'x')).collect())
        .collect();
    let whole = |blocks: [bool; 3]| blocks.iter().flat_map(|&there| [there; 8]).collect::<Vec<bool>>();
    for blocks in [[false, true, true], [true, false, true], [true, true, false], [false, false, true]] {
        assert!(images.contains(&whole(blocks)), "{blocks:?}");
    }
    assert!(
        images.iter().any(|sectors| sectors[..8].contains(&true) && sectors[..8].contains(&false)),
        "torn"
    );
}

#[test]
fn a_cut_that_is_not_synced_may_be_there_or_not() {
    let (disk, file) = disk_with(b"kept and cut");
    file.truncate(4).unwrap();
    let found = outcomes(&disk, &[FILE]);
    assert!(found.contains(&vec![Some(b"kept".to_vec())]));
    assert!(found.contains(&vec![Some(b"kept and cut".to_vec())]));
}

#[test]
fn a_file_sync_does_nothing_for_the_name_and_a_folder_sync_nothing_for_the_content() {
    let (disk, _file) = disk_with(b"kept");
    let [one, other] = ["/folder/synced", "/folder/named"];
    let file = disk.open(Path::new(one), Open::New).unwrap();
    file.write_at(b"one", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, &[one]), BTreeSet::from([vec![None], vec![Some(b"one".to_vec())]]));
    disk.open(Path::new(other), Open::New).unwrap().write_at(b"other", 0).unwrap();
    disk.sync_folder(Path::new("/folder")).unwrap();
    let found = outcomes(&disk, &[other]);
    assert!(found.contains(&vec![Some(vec![])]) && !found.contains(&vec![None]), "{found:?}");
}

#[test]
fn a_rename_is_old_or_new_and_never_neither() {
    let (disk, _file) = disk_with(b"old");
    let aside = disk.open(Path::new("/folder/aside"), Open::New).unwrap();
    aside.write_at(b"new", 0).unwrap();
    aside.sync().unwrap();
    disk.rename(Path::new("/folder/aside"), Path::new(FILE)).unwrap();
    let either = [b"old", b"new"].map(|bytes| vec![Some(bytes.to_vec())]);
    assert_eq!(outcomes(&disk, &[FILE]), BTreeSet::from(either));
    disk.sync_folder(Path::new("/folder")).unwrap();
    assert_eq!(
        outcomes(&disk, &[FILE, "/folder/aside"]),
        BTreeSet::from([vec![Some(b"new".to_vec()), None]])
    );
}

#[test]
fn a_rename_of_a_file_that_was_not_synced_may_leave_nothing_in_it() {
    let (disk, _file) = disk_with(b"old");
    disk.open(Path::new("/folder/aside"), Open::New).unwrap().write_at(b"new", 0).unwrap();
    disk.rename(Path::new("/folder/aside"), Path::new(FILE)).unwrap();
    assert!(outcomes(&disk, &[FILE]).contains(&vec![Some(vec![])]));
}

#[test]
fn names_that_were_not_synced_come_back_in_any_order_but_their_own() {
    let (disk, _file) = disk_with(b"kept");
    for name in ["one", "other"] {
        disk.open(&Path::new("/folder").join(name), Open::New).unwrap();
    }
    disk.remove_file(Path::new("/folder/one")).unwrap();
    disk.remove_file(Path::new(FILE)).unwrap();
    let there = |found: &Vec<Option<Vec<u8>>>| found.iter().map(Option::is_some).collect::<Vec<_>>();
    let found: BTreeSet<_> =
        outcomes(&disk, &["/folder/one", "/folder/other", FILE]).iter().map(there).collect();
    assert_eq!(found.len(), 8, "every combination: {found:?}");
}

#[test]
fn a_sync_that_fails_loses_data_although_the_cache_is_right_and_the_next_one_says_ok() {
    let mut lost = 0;
    for seed in 0..20 {
        let (disk, file) = disk_with(b"kept");
        disk.seed(seed);
        file.append(b"more").unwrap();
        disk.set(Fault { failure: Failure::FailedSync, at: 0, span: Span::Once });
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
        file.sync().unwrap();
        assert_eq!(read(&disk, FILE).unwrap(), b"keptmore", "the cache is right");
        let found = outcomes(&disk, &[FILE]);
        assert_eq!(found.len(), 1, "a sync made it final: {found:?}");
        disk.drop_caches();
        let shown = read(&disk, FILE).unwrap();
        assert_eq!(found, BTreeSet::from([vec![Some(shown.clone())]]));
        lost += u32::from(shown != b"keptmore");
        // The same bytes written again make the block dirty, and then a sync means what it says.
        let file = disk.open(Path::new(FILE), Open::Existing).unwrap();
        file.write_at(b"keptmore", 0).unwrap();
        file.sync().unwrap();
        assert_eq!(outcomes(&disk, &[FILE]), BTreeSet::from([vec![Some(b"keptmore".to_vec())]]));
    }
    assert!(lost > 10, "{lost} of 20");
}

#[test]
fn a_dead_process_changes_nothing_more_and_leaves_its_locks() {
    let (disk, _file) = disk_with(b"kept");
    let dying = disk.other_process();
    let (ours, theirs) = [&disk, &dying].map(|disk| disk.open(Path::new(FILE), Open::Append).unwrap()).into();
    assert!(theirs.try_lock().unwrap() && !ours.try_lock().unwrap());
    theirs.append(b" written").unwrap();
    dying.die();
    assert!(theirs.append(b" too late").is_err() && ours.try_lock().unwrap());
    assert_eq!(
        read(&disk, FILE).unwrap(),
        b"kept written",
        "what it wrote stays as long as the machine runs"
    );
}

#[test]
fn a_full_disk_takes_half_of_a_write_and_numbers_of_removed_files_are_used_again() {
    let (disk, file) = disk_with(b"kept");
    disk.set(Fault { failure: Failure::NoSpace, at: 0, span: Span::Lasting });
    assert_eq!(file.append(b"more").unwrap(), 2);
    assert_eq!(file.append(b"re").unwrap_err().raw_os_error(), Some(28));
    assert!(matches!(disk.clear()[..], [(Call::Append, _)]));
    let number = file.stat().unwrap().inode;
    drop(file);
    disk.remove_file(Path::new(FILE)).unwrap();
    assert_eq!(disk.open(Path::new(FILE), Open::New).unwrap().stat().unwrap().inode, number);
}
