//! What files looked like, kept between processes: a cache, checked by its hash, that only saves reading them again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rethread_store::BlobId;

use crate::checkpointer::Checkpointer;
use crate::known::{Item, Known};
use crate::look::Print;
use crate::name::Name;
use crate::path::TreePath;
use crate::state::{File, Place, Present, State, Target};
use crate::tracker::Tracker;

const MAGIC: &[u8] = b"rethread files 1\n";

/// Reads the cache of a root. Also returns whether it is this session's own.
pub(crate) fn read(checkpointer: &Checkpointer) -> Option<(bool, Tracker)> {
    let bytes = fs::read(path(checkpointer)?).ok()?;
    let (hash, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
    if BlobId::of(body).as_hash()[..] != *hash {
        return None;
    }
    let mut reader = Reader(body);
    let tracker = reader.tracker(checkpointer)?;
    reader.0.is_empty().then_some(tracker)
}

/// Writes the cache of a root. If that fails, more is read the next time.
pub(crate) fn write(checkpointer: &Checkpointer, tracker: &Tracker) {
    let Some(path) = path(checkpointer) else { return };
    let body = Writer::of(checkpointer, tracker);
    let write = || {
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)?;
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(MAGIC)?;
        file.write_all(BlobId::of(&body).as_hash())?;
        file.write_all(&body)?;
        fs::rename(aside, &path)
    };
    let _: std::io::Result<()> = write();
}

/// One for each root, whichever session looked last: they all see the same files.
fn path(checkpointer: &Checkpointer) -> Option<PathBuf> {
    let root = BlobId::of(Name::from(checkpointer.root_path().as_os_str()).as_bytes()).to_string();
    Some(checkpointer.settings().cache.as_ref()?.join(&root[..32]))
}

struct Writer {
    bytes: Vec<u8>,
    packs: Vec<BlobId>,
}

impl Writer {
    fn of(checkpointer: &Checkpointer, tracker: &Tracker) -> Vec<u8> {
        let packs = tracker.known.folders.values().flatten().filter_map(|item| item.state.file()?.place);
        let packs: std::collections::BTreeSet<BlobId> = packs.map(|place| place.pack).collect();
        let mut writer = Self { bytes: Vec::with_capacity(8 << 20), packs: packs.into_iter().collect() };
        writer.text(checkpointer.owner().id().as_str().as_bytes());
        writer.text(Name::from(checkpointer.root_path().as_os_str()).as_bytes());
        writer.number(tracker.position);
        writer.number(u64::from(tracker.baseline));
        writer.number(writer.packs.len() as u64);
        for pack in writer.packs.clone() {
            writer.bytes.extend_from_slice(pack.as_hash());
        }
        writer.number(tracker.known.left_out.len() as u64);
        tracker.known.left_out.iter().for_each(|path| writer.text(path.as_bytes()));
        writer.number(tracker.known.folders.len() as u64);
        for (folder, items) in &tracker.known.folders {
            writer.text(folder);
            writer.number(items.len() as u64);
            items.iter().for_each(|item| writer.item(item));
        }
        writer.bytes
    }

    fn item(&mut self, item: &Item) {
        self.text(&item.name);
        self.bytes.push(u8::from(item.young) | u8::from(item.open) << 1);
        let Print { device, inode, size, mode, modified, changed, names } = item.print;
        for number in [device, inode, size, u64::from(mode), modified as u64, changed as u64, names] {
            self.number(number);
        }
        match &item.state {
            State::Absent => self.bytes.push(0),
            State::Present(Present::File(file)) => {
                self.bytes.push(1);
                self.bytes.extend_from_slice(file.hash.as_hash());
                self.number(file.size);
                self.number(file.mode.map_or(u64::MAX, u64::from));
                self.number(file.names);
                let place =
                    file.place.and_then(|place| Some((self.packs.binary_search(&place.pack).ok()?, place)));
                match place {
                    None => self.number(u64::MAX),
                    Some((pack, place)) => [pack as u64, place.at, place.length]
                        .into_iter()
                        .for_each(|number| self.number(number)),
                }
            }
            State::Present(Present::Symlink(target)) => {
                self.bytes.push(2);
                self.text(target.0.as_bytes());
            }
            State::Present(Present::Folder { mode }) => {
                self.bytes.push(3);
                self.number(mode.map_or(u64::MAX, u64::from));
            }
            State::Unknown { why } => {
                self.bytes.push(4);
                self.text(why.as_bytes());
            }
            State::Skipped { reason } => {
                self.bytes.push(5);
                self.text(reason.as_bytes());
            }
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn tracker(&mut self, checkpointer: &Checkpointer) -> Option<(bool, Tracker)> {
        let own = self.text()? == checkpointer.owner().id().as_str().as_bytes();
        if self.text()? != Name::from(checkpointer.root_path().as_os_str()).as_bytes() {
            return None;
        }
        let (position, baseline) = (self.number()?, self.number()? == 1);
        let packs: Vec<BlobId> = (0..self.number()?).map(|_| self.hash()).collect::<Option<_>>()?;
        let left_out =
            (0..self.number()?).map(|_| TreePath::parse(self.text()?).ok()).collect::<Option<_>>()?;
        let mut known = Known { left_out, ..Known::default() };
        for _ in 0..self.number()? {
            let folder = self.text()?.into();
            let items = (0..self.number()?).map(|_| self.item(&packs)).collect::<Option<Vec<_>>>()?;
            known.folders.insert(folder, items);
        }
        Some((own, Tracker { known, position, baseline, stale: 0 }))
    }

    fn item(&mut self, packs: &[BlobId]) -> Option<Item> {
        let name = self.text()?.into();
        let flags = self.byte()?;
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = self.number()?;
        }
        let [device, inode, size, mode, modified, changed, names] = numbers;
        let (modified, changed) = (modified as i64, changed as i64);
        let print = Print { device, inode, size, mode: mode as u32, modified, changed, names };
        let state = self.state(packs)?;
        Some(Item { name, state, print, young: flags & 1 != 0, open: flags & 2 != 0 })
    }

    fn state(&mut self, packs: &[BlobId]) -> Option<State> {
        let words = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        Some(match self.byte()? {
            0 => State::Absent,
            1 => {
                let (hash, size, mode, names) = (self.hash()?, self.number()?, self.mode()?, self.number()?);
                let place = match self.number()? {
                    u64::MAX => None,
                    pack => Some(Place {
                        pack: *packs.get(pack as usize)?,
                        at: self.number()?,
                        length: self.number()?,
                    }),
                };
                State::Present(Present::File(File { hash, size, mode, names, place }))
            }
            2 => State::Present(Present::Symlink(Target(self.text()?.into()))),
            3 => State::Present(Present::Folder { mode: self.mode()? }),
            4 => State::Unknown { why: words(self.text()?) },
            5 => State::Skipped { reason: words(self.text()?) },
            _ => return None,
        })
    }

    fn mode(&mut self) -> Option<Option<u32>> {
        let number = self.number()?;
        Some((number != u64::MAX).then_some(number as u32 & 0o777))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn hash(&mut self) -> Option<BlobId> {
        let (hash, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(BlobId::from_hash(*hash))
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}
