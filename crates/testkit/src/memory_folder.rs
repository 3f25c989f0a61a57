//! Folders in memory, where a sync costs nothing: for tests of what something does, not of what it survives.

use tempfile::TempDir;

/// What tests keep there at most. Containers often have a small place, which would be full in the middle of a test.
const ROOM: u64 = 2 << 30;

/// Makes a folder in memory; on disk where there is no such place, or little room in it.
#[expect(clippy::missing_panics_doc, reason = "a test that cannot go on has failed")]
pub fn memory_folder(prefix: &str) -> TempDir {
    let place = "/dev/shm";
    let has_room = rustix::fs::statvfs(place).is_ok_and(|it| it.f_bavail.saturating_mul(it.f_frsize) >= ROOM);
    let folder = if has_room { TempDir::with_prefix_in(prefix, place).ok() } else { None };
    folder.unwrap_or_else(|| TempDir::with_prefix(prefix).expect("a folder can be made"))
}
