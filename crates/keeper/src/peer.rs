//! Who is at the other end of a connection.

use std::fs;

use tokio::net::UnixStream;

use crate::defect::Defect;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody over TCP: anybody on this machine, and any page in a browser on it.
    Tcp,
    /// A process of this user over the Unix socket.
    Local {
        /// The process.
        pid: u32,
    },
    /// A process over the Unix socket that must not come in.
    Stranger {
        /// Why.
        why: &'static str,
    },
}

impl Peer {
    /// Looks at who is at the other end of the Unix socket. `driven` are the processes that guard driven agents.
    pub(crate) fn of(stream: &UnixStream, driven: &[u32]) -> Self {
        let Ok(credentials) = stream.peer_cred() else {
            return Peer::Stranger { why: "the system does not say who asks" };
        };
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Peer::Stranger { why: "another user asks" };
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        match pid {
            Some(pid) if descends(pid, driven) && !Defect::TrustTheAgent.is_on() => {
                Peer::Stranger { why: "an agent asks that this keeper drives" }
            }
            Some(pid) => Peer::Local { pid },
            // Where the system does not tell, nobody can be told from an agent.
            None if !driven.is_empty() => {
                Peer::Stranger { why: "the system does not say which process asks" }
            }
            None => Peer::Local { pid: 0 },
        }
    }
}

/// Returns whether a process descends from one of others. A guard adopts what its agent leaves behind, so that there is
/// no way out of this line.
fn descends(pid: u32, driven: &[u32]) -> bool {
    if driven.is_empty() {
        return false;
    }
    let mut at = pid;
    // No line is longer than this, unless somebody plays tricks.
    for _ in 0..4096 {
        if driven.contains(&at) {
            return true;
        }
        match parent(at) {
            Some(0) => return false,
            Some(parent) => at = parent,
            // It ended meanwhile: nobody can say whose it was.
            None => return true,
        }
    }
    true
}

/// Returns the process that started another, or has adopted it.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, so the fields are counted from its closing parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_descends_from_a_driven_agent_is_a_stranger() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let (one, _other) = UnixStream::pair().unwrap();
        let own = std::process::id();
        assert_eq!(Peer::of(&one, &[]), Peer::Local { pid: own });
        assert_eq!(Peer::of(&one, &[u32::MAX]), Peer::Local { pid: own });
        // The agent itself, and whoever it descends from.
        for driven in [own, parent(own).unwrap()] {
            assert!(matches!(Peer::of(&one, &[driven]), Peer::Stranger { .. }), "{driven}");
        }
    }
}
