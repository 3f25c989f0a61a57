//! A person's file of passwords: a line for each server, `host:port:database:user:password`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rethread_store::{Error, Result};

/// What a password is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// Returns the password of the first line that fits; `None` if none does, or there is no file.
pub(crate) fn look_up(path: &Path, wanted: Wanted<'_>) -> Result<Option<String>> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    if metadata.mode() & 0o077 != 0 {
        return Err(Error::BadName {
            what: "file of passwords",
            text: path.display().to_string(),
            rule: "others can read it; only its owner may, as after chmod 600",
        });
    }
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    Ok(text.lines().find_map(|line| password(line, wanted)))
}

fn password(line: &str, wanted: Wanted<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let fields = fields(line);
    let [host, port, database, user, password] = &fields[..] else { return None };
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let all = fits(host, wanted.host)
        && fits(port, &wanted.port.to_string())
        && fits(database, wanted.database)
        && fits(user, wanted.user);
    all.then(|| password.clone())
}

/// Splits a line at its colons, of which those after a backslash do not count.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut characters) = (vec![String::new()], line.chars());
    while let Some(character) = characters.next() {
        match (character, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (_, Some(field)) => field.push(character),
            (_, None) => unreachable!("there is a first field"),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let wanted = Wanted { host: "db", port: 5432, database: "sessions", user: "ada" };
        for (line, expected) in [
            ("db:5432:sessions:ada:secret", Some("secret")),
            ("*:*:*:ada:a\\:b\\\\c", Some("a:b\\c")),
            ("db:5433:sessions:ada:secret", None),
            ("#db:5432:sessions:ada:secret", None),
            ("db:5432:sessions:ada", None),
        ] {
            assert_eq!(password(line, wanted).as_deref(), expected, "{line}");
        }
    }
}
