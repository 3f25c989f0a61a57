//! Finding secrets in a text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use regex::{Regex, RegexSet};

use crate::rule::{RULES, Rule};

/// How many bits a letter of a random value has at least, on average over its own letters. Words of sixteen letters have
/// about three; random hexadecimal digits approach four.
const RANDOM: f64 = 3.2;

/// A secret that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is, such as `github-token`.
    pub kind: &'static str,
    /// Where it stands, in bytes.
    pub place: Range<usize>,
}

/// Knows what secrets look like.
#[derive(Debug)]
pub struct Redactor {
    /// Tells which rules are worth a search: for most texts, none.
    any: RegexSet,
    rules: Vec<(Rule, Regex)>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl Redactor {
    /// Makes one. It takes a few milliseconds, so keep it.
    #[expect(clippy::expect_used, reason = "the patterns are constants, and a test compiles them")]
    pub fn new() -> Self {
        let any = RegexSet::new(RULES.iter().map(Rule::pattern)).expect("patterns are sound");
        let compiled = |rule: &Rule| (*rule, Regex::new(&rule.pattern()).expect("patterns are sound"));
        Self { any, rules: RULES.iter().map(compiled).collect() }
    }

    /// Returns every secret in a text, in order. No two overlap.
    pub fn find(&self, text: &str) -> Vec<Finding> {
        let mut found: BTreeMap<usize, Finding> = BTreeMap::new();
        for number in self.any.matches(text) {
            let (rule, regex) = &self.rules[number];
            for captures in regex.captures_iter(text) {
                let Some(secret) = captures.name("secret") else { continue };
                let place = secret.range();
                let before = found.range(..place.end).next_back();
                let is_new = before.is_none_or(|(_, known)| known.place.end <= place.start);
                if is_new && (!rule.is_random || is_random(secret.as_str())) {
                    found.insert(place.start, Finding { kind: rule.kind, place });
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns a text with `[redacted KIND]` in place of every secret.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
        for Finding { kind, place } in found {
            clean.push_str(&text[from..place.start]);
            clean.push_str("[redacted ");
            clean.push_str(kind);
            clean.push(']');
            from = place.end;
        }
        clean.push_str(&text[from..]);
        Cow::Owned(clean)
    }
}

/// Returns whether a value looks as if nobody had thought it up: digits among letters, few of them twice.
fn is_random(value: &str) -> bool {
    let count = |is: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| is(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let has_letters = count(u8::is_ascii_alphabetic) > 0;
    let has_both_cases = count(u8::is_ascii_lowercase) > 0 && count(u8::is_ascii_uppercase) > 0;
    let is_mixed = has_letters && (digits >= 3 || (digits > 0 && has_both_cases));
    is_mixed && entropy(value.as_bytes()) >= RANDOM && !is_uuid(value)
}

/// Ids stand beside names such as `tokenId` everywhere, and open nothing.
fn is_uuid(value: &str) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    value.len() == 36
        && value.bytes().enumerate().all(
            |(at, byte)| {
                if is_dash(at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
            },
        )
}

/// Bits a letter, by how often each occurs.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    value.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let share = |&count: &u32| f64::from(count) / value.len() as f64;
    counts.iter().filter(|&&count| count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

    /// Secrets that open nothing, put together here so that no scanner takes this file for a leak.
    fn secrets() -> Vec<(&'static str, String)> {
        let random = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zC0fR3uI6oL9";
        let upper = "Q2W3E4R5T6Y7U2I3";
        vec![
            ("anthropic-key", format!("sk-ant-api03-{random}")),
            ("openai-key", format!("sk-proj-{random}")),
            ("stripe-key", format!("sk_live_{}", &random[..24])),
            ("github-token", format!("ghp_{}", &random[..36])),
            ("github-token", format!("github_pat_{}", &random[..30])),
            ("gitlab-token", format!("glpat-{}", &random[..20])),
            ("aws-key", format!("AKIA{upper}")),
            ("google-key", format!("AIza{}", &random[..35])),
            ("slack-token", format!("xoxb-{}", &random[..24])),
            ("npm-token", format!("npm_{}", &random[..36])),
            ("hugging-face-token", format!("hf_{}", &random[..34])),
            ("jwt", format!("eyJ{0}.eyJ{0}.{0}", &random[..20])),
        ]
    }

    fn kinds(text: &str) -> Vec<&'static str> {
        REDACTOR.find(text).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn keys_of_the_usual_providers_are_found_wherever_they_stand() {
        for (kind, secret) in secrets() {
            for text in [secret.clone(), format!("key: {secret}."), format!(r#"{{"a":"x={secret}\n"}}"#)] {
                assert_eq!(kinds(&text), [kind], "{text}");
                assert!(!REDACTOR.redact(&text).contains(&secret), "{text}");
            }
        }
    }

    #[test]
    fn a_private_key_goes_with_its_lines_and_nothing_after_it() {
        let key =
            r"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\nab+/cd==\n-----END RSA PRIVATE KEY-----";
        let line = format!(r#"{{"text":"before\n{key}\nafter it - all of it"}}"#);
        let expected = r#"{"text":"before\n[redacted private-key]\nafter it - all of it"}"#;
        assert_eq!(REDACTOR.redact(&line), expected);
        let cut = format!(r#"{{"text":"{}"}}"#, &key[..60]);
        assert_eq!(REDACTOR.redact(&cut), r#"{"text":"[redacted private-key]"}"#);
    }

    #[test]
    fn passwords_in_urls_and_random_values_under_telling_names_are_found() {
        let clean = |text: &str| REDACTOR.redact(text).into_owned();
        assert_eq!(
            clean("postgres://ada:hunter2!@db.example/x"),
            "postgres://ada:[redacted password-in-url]@db.example/x"
        );
        assert_eq!(
            clean("Authorization: Bearer 9f8Ae7d6C5b4a39281706f5E"),
            "Authorization: Bearer [redacted bearer-token]"
        );
        let value = "Zx81kq0PmW7vTd93LsYb";
        for text in [
            format!("DB_PASSWORD={value}"),
            format!(r#"{{"input":"{{\"api_key\": \"{value}\"}}"}}"#),
            format!("client_secret: '{value}'"),
            format!("let token := {value}"),
        ] {
            assert_eq!(clean(&text), text.replace(value, "[redacted secret]"));
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_is_left_alone() {
        for text in [
            r#"{"usage":{"input_tokens":54770,"cache_read_input_tokens":17291}}"#,
            r#"{"tokenId":"1f00ac1a-c939-4d10-ab07-8ceeee67bac7"}"#,
            "API_KEY=${API_KEY} TOKEN=process.env.MY_SECRET_TOKEN_NAME password: <your password here>",
            "class=\"sk-loading-spinner-container-with-shadow\"",
            "see the password_hash_function: argon2id_with_default_parameters",
            "https://example.com:8080/a@b git@github.com:ada/parser.git",
            "Bearer authentication-is-described-elsewhere",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        ] {
            assert_eq!(REDACTOR.find(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_json_line_stays_one_and_redacting_it_again_changes_nothing(
            words in proptest::collection::vec(".{0,24}", 0..6),
            picks in proptest::collection::vec(0..12_usize, 0..4),
        ) {
            let secrets = secrets();
            let picked = picks.iter().map(|&pick| format!("\n{} ", secrets[pick].1));
            let text: String = words.iter().cloned().chain(picked).collect();
            let line = serde_json::json!({ "text": text, "token": text }).to_string();
            let clean = REDACTOR.redact(&line).into_owned();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
            for &pick in &picks {
                prop_assert!(!clean.contains(&secrets[pick].1));
            }
            prop_assert_eq!(REDACTOR.redact(&clean), clean.as_str());
        }
    }
}
