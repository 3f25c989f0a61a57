//! File systems that several machines may have open at once, by the numbers that Linux gives them. Changes by the others
//! give no notice here, and locks and shared memory need not work.
//!
//! This file is here twice, in `rethread-sqlite` and in `rethread-transcripts`, which have no other crate in common that it
//! would belong in; a test of the latter sees to it that it is the same.

const SHARED: [(&str, i64); 18] = [
    ("9P", 0x0102_1997),
    ("AFS", 0x5346_414F),
    ("AFS of the kernel", 0x6B41_4653),
    ("BeeGFS", 0x1983_0326),
    ("Ceph", 0x00C3_6400),
    ("CIFS", 0xFF53_4D42),
    ("Coda", 0x7375_7245),
    ("FUSE, which SSH and virtio come by", 0x6573_5546),
    ("GFS2", 0x0116_1970),
    ("GPFS", 0x4750_4653),
    ("Lustre", 0x0BD0_0BD0),
    ("NFS", 0x6969),
    ("OCFS2", 0x7461_636F),
    ("PanFS", 0xAAD7_AAEA),
    ("SMB", 0x517B),
    ("SMB 2", 0xFE53_4D42),
    ("VirtualBox", 0x786F_4256),
    ("VMware", 0xBACB_ACBC),
];

/// Returns whether a file system of this kind is one of them.
pub(crate) fn is_shared(kind: i64) -> bool {
    SHARED.iter().any(|(_, number)| *number == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_machines_share_are_known_by_their_numbers() {
        assert!(is_shared(0x6969) && is_shared(0xFF53_4D42) && !is_shared(0xEF53) && !is_shared(0x5846_5342));
    }
}
