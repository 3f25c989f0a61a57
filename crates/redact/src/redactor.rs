//! Finding secrets in a text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use regex::{Regex, RegexSet};

use crate::private_key;
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
    /// One more line of a private key whose lines are strings of their own.
    next_string: Regex,
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
        let next_string = Regex::new(private_key::NEXT_STRING).expect("patterns are sound");
        Self { any, rules: RULES.iter().map(compiled).collect(), next_string }
    }

    /// Returns every secret in a text, in order. No two overlap.
    pub fn find(&self, text: &str) -> Vec<Finding> {
        let mut found: BTreeMap<usize, Finding> = BTreeMap::new();
        for number in self.any.matches(text) {
            let (rule, regex) = &self.rules[number];
            for captures in regex.captures_iter(text) {
                if captures.name("harmless").is_some() {
                    continue;
                }
                let Some(secret) = captures.name("secret") else { continue };
                let place = secret.range();
                let before = found.range(..place.end).next_back();
                let is_new = before.is_none_or(|(_, known)| known.place.end <= place.start);
                if is_new && (!rule.is_random || is_random(secret.as_str())) {
                    let is_open = rule.kind == private_key::KIND && !secret.as_str().contains("-----END ");
                    let rest = if is_open { self.next_strings(text, place.end) } else { Vec::new() };
                    for place in std::iter::once(place).chain(rest) {
                        found.insert(place.start, Finding { kind: rule.kind, place });
                    }
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns the rest of a private key whose lines are strings of their own.
    fn next_strings(&self, text: &str, mut from: usize) -> Vec<Range<usize>> {
        let (mut strings, mut is_in_key) = (Vec::new(), false);
        while let Some(next) = self.next_string.captures(&text[from..]) {
            let Some(line) = next.name("secret").map(|line| line.start() + from..line.end() + from) else {
                break;
            };
            let is = |group: &str| next.name(group).is_some();
            let is_empty = next.name("last").is_some_and(|last| last.is_empty());
            // A short string is the last line of a key, or another text's.
            if is("last") && !is_empty && !is_in_key {
                break;
            }
            is_in_key = is("long");
            from = line.end;
            strings.extend((!is_empty).then_some(line));
            if is("end") {
                break;
            }
        }
        strings
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
            ("openrouter-key", format!("sk-or-v1-{random}")),
            ("openai-key", format!("sk-proj-{random}")),
            ("stripe-key", format!("sk_live_{}", &random[..24])),
            ("github-token", format!("ghp_{}", &random[..36])),
            ("github-token", format!("github_pat_{}", &random[..30])),
            ("gitlab-token", format!("glpat-{}", &random[..20])),
            ("aws-key", format!("AKIA{upper}")),
            ("google-key", format!("AIza{}", &random[..35])),
            ("google-token", format!("ya29.{random}")),
            ("slack-token", format!("xoxb-{}", &random[..24])),
            ("slack-token", format!("xapp-1-{}", &random[..24])),
            ("slack-webhook", format!("hooks.slack.com/services/T0{}/B0{random}", &random[..9])),
            ("npm-token", format!("npm_{}", &random[..36])),
            ("pypi-token", format!("pypi-{random}{random}")),
            ("crates-token", format!("cio{}", &random[..32])),
            ("hugging-face-token", format!("hf_{}", &random[..34])),
            ("digitalocean-token", format!("dop_v1_{}", "0f1e2d3c4b5a6978".repeat(4))),
            ("sendgrid-key", format!("SG.{}.{random}", &random[..22])),
            ("telegram-token", format!("123456789:AA{}", &random[..33])),
            ("xai-key", format!("xai-{random}{random}")),
            ("groq-key", format!("gsk_{random}{}", &random[..13])),
            ("replicate-token", format!("r8_{}", &random[..37])),
            ("perplexity-key", format!("pplx-{random}{}", &random[..9])),
            ("docker-token", format!("dckr_pat_{}", &random[..27])),
            ("shopify-token", format!("shpat_{}", "0f1e2d3c4b5a6978".repeat(2))),
            ("atlassian-token", format!("ATATT3xFfGF0{random}-{random}=1A2B3C4D")),
            ("linear-key", format!("lin_api_{random}{}", &random[..1])),
            ("age-key", format!("AGE-SECRET-KEY-1{}", upper.repeat(4))),
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
    fn every_kind_that_has_a_form_of_its_own_has_a_sample() {
        let sampled: Vec<&str> = secrets().into_iter().map(|(kind, _)| kind).collect();
        let told_by_what_is_around =
            ["private-key", "password-in-url", "password-in-command", "bearer-token", "secret"];
        let known = |kind: &str| sampled.contains(&kind) || told_by_what_is_around.contains(&kind);
        let without: Vec<&str> = RULES.iter().map(|rule| rule.kind).filter(|kind| !known(kind)).collect();
        assert_eq!(without, Vec::<&str>::new());
    }

    /// A private key that opens nothing, as lines: what is between its first and its last must never be left.
    fn key_lines(name: &str, headers: &[&str]) -> Vec<String> {
        let line = "MIIEvQ/BADANBgkqhkiG9w0BAQEFAASCBKcw+gSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let body = [line, line, "ab+/cd=="].map(str::to_owned);
        let first = format!("-----BEGIN {name}-----");
        let headers = headers.iter().map(|header| (*header).to_owned());
        let last = format!("-----END {name}-----");
        std::iter::once(first).chain(headers).chain(body).chain([last]).collect()
    }

    /// The ways in which keys are written, each as what an agent may have seen of one.
    fn shapes() -> Vec<(&'static str, String)> {
        let lines = key_lines("PRIVATE KEY", &[]);
        let text = lines.join("\n") + "\n";
        let in_json = |text: &str| serde_json::json!({ "private_key": text, "id": "a" }).to_string();
        let numbered = |mark: &str| {
            let number = |(at, line): (usize, &String)| format!("{:>6}{mark}{line}\n", at + 1);
            lines.iter().enumerate().map(number).collect::<String>()
        };
        let armor = ["Version: GnuPG v1.4_2 (GNU/Linux)", "Comment: https://example.org/~a?b=\u{fc}", ""];
        let dek = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B2C3D4E5F60718293A4B5C6D7E8F9", ""];
        let quoted = lines.iter().map(|line| format!("  \"{line}\\n\" +\n"));
        vec![
            ("lines", text.clone()),
            ("lines of Windows", text.replace('\n', "\r\n")),
            ("JSON", in_json(&text)),
            ("JSON within JSON", in_json(&in_json(&text))),
            ("JSON within JSON within JSON", in_json(&in_json(&in_json(&text)))),
            ("JSON with slashes escaped", in_json(&text).replace('/', "\\/")),
            ("JSON within JSON with slashes escaped", in_json(&in_json(&text).replace('/', "\\/"))),
            (
                "JSON that escapes signs by number",
                in_json(&text).replace('+', "\\u002b").replace('=', "\\u003d"),
            ),
            ("numbers and arrows", numbered("\u{2192}")),
            ("numbers and tabs", numbered("\t")),
            ("numbers and colons", numbered(":")),
            ("numbers and bars", numbered(" | ")),
            ("indented lines", text.replace('\n', "\n    ")),
            ("a difference", text.replace('\n', "\n+")),
            ("one line", text.replace('\n', " ")),
            ("source code", quoted.collect()),
            ("a PGP block", key_lines("PGP PRIVATE KEY BLOCK", &armor).join("\n")),
            ("an encrypted key", key_lines("RSA PRIVATE KEY", &dek).join("\n")),
        ]
    }

    /// Returns whether something of a key is in a text: eight letters of its body.
    fn shows_the_key(text: &str) -> bool {
        let lines = key_lines("PRIVATE KEY", &[]);
        let letters: Vec<&[u8]> = lines[1..=2].iter().flat_map(|line| line.as_bytes().windows(8)).collect();
        text.as_bytes().windows(8).any(|window| letters.contains(&window)) || text.contains("ab+")
    }

    /// Once, only the first line was taken out of all but the plainest, and the key stood behind it.
    #[test]
    fn nothing_of_a_private_key_is_left_however_it_is_written() {
        for (shape, text) in shapes() {
            let line = serde_json::json!({ "before": "x", "text": format!("see: {text}"), "then": "it" });
            let clean = REDACTOR.redact(&line.to_string()).into_owned();
            assert!(!shows_the_key(&clean) && clean.contains("[redacted private-key]"), "{shape}: {clean}");
            let clean: serde_json::Value = serde_json::from_str(&clean).unwrap();
            assert_eq!((&clean["before"], &clean["then"]), (&line["before"], &line["then"]), "{shape}");
            if shape != "source code" {
                assert!(!shows_the_key(&REDACTOR.redact(&text)), "{shape}");
            }
        }
    }

    /// Once, only the string that says what it is was taken out.
    #[test]
    fn nothing_is_left_of_a_private_key_whose_lines_are_strings_of_their_own() {
        let dek = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B2C3D4E5F60718293A4B5C6D7E8F9", ""];
        for headers in [&[][..], &dek] {
            let lines = key_lines("RSA PRIVATE KEY", headers);
            let ended = lines.iter().map(|line| format!("{line}\n")).collect();
            let numbered =
                lines.iter().enumerate().map(|(at, line)| format!("{:>6}\t{line}", at + 1)).collect();
            for lines in [lines.clone(), ended, numbered, lines[..lines.len() - 2].to_vec()] {
                let line =
                    serde_json::json!({ "before": ["x"], "lines": lines, "then": "it", "and": ["so", "on"] });
                for text in [line.to_string(), serde_json::to_string_pretty(&line).unwrap()] {
                    let text = REDACTOR.redact(&text).into_owned();
                    assert!(!shows_the_key(&text) && !text.contains("0A1B2C3D"), "{text}");
                    let clean: serde_json::Value = serde_json::from_str(&text).unwrap();
                    for left in ["before", "then", "and"] {
                        assert_eq!(clean[left], line[left], "{text}");
                    }
                    assert_eq!(REDACTOR.redact(&text), text, "again it changes nothing");
                }
            }
        }
        let words = r#"["-----BEGIN PRIVATE KEY-----","then","the key"]"#;
        assert_eq!(REDACTOR.redact(words), r#"["[redacted private-key]","then","the key"]"#);
    }

    #[test]
    fn nothing_is_left_of_a_private_key_that_was_cut_off_anywhere() {
        for (shape, text) in shapes().into_iter().filter(|(shape, _)| *shape != "source code") {
            let text = serde_json::json!({ "text": text }).to_string();
            let begin = text.find("KEY").unwrap() + "KEY BLOCK-----".len();
            for at in (begin..text.find("-----END").unwrap()).filter(|&at| text.is_char_boundary(at)) {
                let clean = REDACTOR.redact(&text[..at]).into_owned();
                assert!(!shows_the_key(&clean), "{shape}, cut off at {at}: {clean}");
            }
        }
    }

    #[test]
    fn what_follows_a_private_key_that_was_cut_off_stays() {
        let line = &key_lines("PRIVATE KEY", &[])[1];
        for (rest, left) in [
            ("\n\nIt goes on like this.", "\n\nIt goes on like this."),
            ("\n... 12 lines left out", "\n... 12 lines left out"),
            ("...\n$ ls", "...\n$ ls"),
            (" (cut)\nNote: see below", " (cut)\nNote: see below"),
            ("\n-----BEGIN CERTIFICATE-----\nMIIB\n", "\n-----BEGIN CERTIFICATE-----\nMIIB\n"),
            (
                "\n\nand\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----.",
                "\n\nand\n[redacted private-key].",
            ),
        ] {
            let cut = format!("-----BEGIN PRIVATE KEY-----\n{line}{rest}");
            assert_eq!(REDACTOR.redact(&cut), format!("[redacted private-key]{left}"));
        }
        let mentioned = "it begins with -----BEGIN PRIVATE KEY----- and then comes the key";
        assert_eq!(
            REDACTOR.redact(mentioned),
            "it begins with [redacted private-key] and then comes the key"
        );
    }

    #[test]
    fn many_keys_without_an_end_take_no_longer_than_as_much_text() {
        let once = |text: &str| {
            let begun = std::time::Instant::now();
            REDACTOR.find(text);
            begun.elapsed()
        };
        let time = |text: &str| (0..3).map(|_| once(text)).min().unwrap();
        let beginnings = |count: usize| "-----BEGIN PRIVATE KEY-----\nMIIB or not, ".repeat(count);
        let (few, many) = (time(&beginnings(250)), time(&beginnings(4_000)));
        assert!(many < few * 16 * 8, "{few:?} for some, {many:?} for sixteen times as many");
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
            format!("ENCRYPTION_KEY={value}"),
            format!("signing-key: {value}"),
            format!("export MASTER_KEY=\"{value}\""),
            format!("masterKey = '{value}'"),
            format!("AccountName=a;AccountKey={value}"),
            format!("passwd={value}"),
            format!("Server=db;Uid=ada;Pwd={value};"),
            format!("AZURE_STORAGE_KEY={value}"),
            format!("DEPLOY_KEY={value}"),
            format!("SERVICE_KEY: {value}"),
            format!("export SUPABASE_KEY='{value}'"),
            format!("DD_APP_KEY={value}"),
            format!("    client-key-data: {value}=="),
            format!(r#"{{"text":"a\nDB_PASS={value}\nPASS={value}\n"}}"#),
            format!(r#"{{"input":"{{\"pass\": \"{value}\"}}"}}"#),
            format!("smtp:\n  pass: {value}"),
        ] {
            let value = if text.ends_with("==") { format!("{value}==") } else { value.to_owned() };
            let value = value.as_str();
            assert_eq!(clean(&text), text.replace(value, "[redacted secret]"));
        }
    }

    #[test]
    fn a_password_that_is_handed_to_curl_is_found() {
        for (text, password) in [
            ("curl -u ada:hunter2 https://example.com", "hunter2"),
            ("curl -sS -X POST --user 'ada:correct-horse' https://example.com/a", "correct-horse"),
            (r#"{"command":"curl -s \"https://example.com/a\" -su ada@example.com:hunter2!"}"#, "hunter2!"),
        ] {
            let clean = REDACTOR.redact(text);
            assert_eq!(clean, text.replace(password, "[redacted password-in-command]"));
            assert_eq!(REDACTOR.redact(&clean), clean);
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_is_left_alone() {
        for text in [
            "primary_key=customer_account_identifier foreign_key: orders_customer_identifier",
            "cache-key: build-dependencies-of-the-workspace",
            "cache-key: v3-linux-8f3a9b2c4d5e6f7a8b9c0d1e \"prompt_cache_key\":\"Zx81kq0PmW7vTd93LsYb\"",
            "public_key=Zx81kq0PmW7vTd93LsYb PUBLIC-KEY: Zx81kq0PmW7vTd93LsYb",
            "--- PASS: TestServer2ClientConnection1Xyz (0.00s)\nPASS: tests/Parser-v3/Build7.check",
            "bypass=Zx81kq0PmW7vTd93LsYb compass: Zx81kq0PmW7vTd93LsYb",
            "first_pass=the_parser_reads_every_line_once",
            "curl -u $USER:$PASSWORD https://example.com && curl -u ada https://example.com:8080/path",
            "monkey=Zx81kq0PmW7vTd93LsYb key-value: Zx81kq0PmW7vTd93LsYb",
            r#"{"usage":{"input_tokens":54770,"cache_read_input_tokens":17291}}"#,
            r#"{"tokenId":"1f00ac1a-c939-4d10-ab07-8ceeee67bac7"}"#,
            "API_KEY=${API_KEY} TOKEN=process.env.MY_SECRET_TOKEN_NAME password: <your password here>",
            "class=\"sk-loading-spinner-container-with-shadow\"",
            "see the password_hash_function: argon2id_with_default_parameters",
            "https://example.com:8080/a@b git@github.com:ada/parser.git",
            "PWD=/home/ada/2026/Parser-v3/Build7 OLDPWD=/home/ada/2026/Parser-v2/Build1",
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
            picks in proptest::collection::vec(0..secrets().len(), 0..4),
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
