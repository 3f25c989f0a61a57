//! Who else could do the work: bare system calls, the naive design, and two databases.

pub(crate) mod bare;
pub(crate) mod group_commit;
pub(crate) mod naive;
pub(crate) mod postgres;
pub(crate) mod redb;
pub(crate) mod sqlite;
