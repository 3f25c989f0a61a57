//! The folder that Claude Code keeps a working directory's sessions in.

/// How long a name may be before it is cut and gets a hash.
const LONGEST: usize = 200;

/// Returns the name of a working directory's folder beneath `projects`.
///
/// Claude Code resolves symbolic links first; this does not. The name cannot be turned back into a path: many paths
/// share one. Where a session worked is in its entries.
///
/// ```
/// use rethread_transcripts::folder_name;
///
/// assert_eq!(folder_name("/home/ada/my.project_1"), "-home-ada-my-project-1");
/// ```
pub fn folder_name(cwd: &str) -> String {
    // As JavaScript counts: in UTF-16 units, so that an emoji is two dashes.
    let units = || cwd.encode_utf16();
    let plain = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    if units().count() <= LONGEST {
        return units().map(plain).collect();
    }
    let hash = units().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let mut name: String = units().take(LONGEST).map(plain).collect();
    name.push('-');
    name.push_str(&base36(hash.unsigned_abs()));
    name
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_and_hashed_and_one_of_exactly_200_is_not() {
        let path = format!("/home/user/projects/{}", "b".repeat(190));
        let cut: String = folder_name(&path);
        assert_eq!(cut, format!("-home-user-projects-{}-wu6kr6", "b".repeat(180)));
        assert_eq!(folder_name(&path[..200]).len(), 200);
    }
}
