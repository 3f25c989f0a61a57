//! How many files a process may have open: each client of the keeper is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as the system allows it; usually it begins with 1,024.
///
/// For programs that serve: a library does not change its host.
pub fn allow_many_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, fewer clients find room, and each is told so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
