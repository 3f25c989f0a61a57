//! redb: one table from an entry's number to its bytes.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::failure::Outcome;

const ENTRIES: TableDefinition<u64, &[u8]> = TableDefinition::new("entries");

/// A database of entries.
pub(crate) struct Redb {
    database: Database,
    next: u64,
}

impl Redb {
    /// Makes the database.
    pub(crate) fn create(folder: &Path) -> Outcome<Self> {
        let database = Database::create(folder.join("entries.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(ENTRIES)?;
        transaction.commit()?;
        Ok(Self { database, next: 0 })
    }

    /// Opens one that is there.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        Ok(Self { database: Database::open(folder.join("entries.redb"))?, next: 0 })
    }

    /// Appends entries, some number of them with each transaction.
    pub(crate) fn append<L: AsRef<[u8]>>(
        &mut self,
        entries: &[L],
        per_transaction: impl IntoIterator<Item = usize>,
        durability: Durability,
    ) -> Outcome<()> {
        let mut rest = entries;
        for count in per_transaction {
            let (now, later) = rest.split_at(count.min(rest.len()));
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(durability)?;
            {
                let mut table = transaction.open_table(ENTRIES)?;
                for entry in now {
                    table.insert(self.next, entry.as_ref())?;
                    self.next += 1;
                }
            }
            transaction.commit()?;
            rest = later;
        }
        match rest {
            [] => Ok(()),
            _ => Err("some entries are in no transaction".into()),
        }
    }

    /// Reads every entry, oldest first.
    pub(crate) fn read(&self, mut each: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<()> {
        for entry in self.database.begin_read()?.open_table(ENTRIES)?.iter()? {
            each(entry?.1.value())?;
        }
        Ok(())
    }
}
