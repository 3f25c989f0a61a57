//! What secrets look like.

use crate::private_key;

/// One kind of secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Its name, as people see it.
    pub(crate) kind: &'static str,
    /// Where it has a group named `secret`, that is the secret; else all of it is.
    pattern: &'static str,
    /// Only what looks random is one.
    pub(crate) is_random: bool,
}

const fn rule(kind: &'static str, pattern: &'static str) -> Rule {
    Rule { kind, pattern, is_random: false }
}

/// A rule whose pattern ordinary names fit too.
const fn loose(kind: &'static str, pattern: &'static str) -> Rule {
    Rule { kind, pattern, is_random: true }
}

impl Rule {
    /// Returns the pattern, in which one group is the secret.
    pub(crate) fn pattern(&self) -> String {
        let Self { pattern, .. } = self;
        // Secrets are ASCII, and knowing no other letters makes the search faster.
        match pattern.contains(GROUP) {
            true => format!("(?-u){pattern}"),
            // They begin where a word does, also after an escaped line break, whose letter belongs to no word.
            false => format!(r"(?-u)(?:\b|\\[bfnrt]){GROUP}{pattern})"),
        }
    }
}

const GROUP: &str = "(?<secret>";

/// The rest of a name, and the sign that gives it a value.
macro_rules! assigned {
    () => {
        concat!(r"[a-z0-9_.-]{0,24}", sign!())
    };
}

/// The sign that gives a name its value.
macro_rules! sign {
    () => {
        r"(?:\\?[\x22'`])?\s{0,3}(?::=|=>|[:=])\s{0,3}"
    };
}

/// A value, in quotes or not.
macro_rules! value {
    () => {
        r"(?:\\?[\x22'`])?(?<secret>[A-Za-z0-9_+/~.!@#%^&*-]{16,}=*)"
    };
}

/// Every rule, the more telling first: where two find the same, the first names it.
///
/// No pattern matches a quote that is not escaped, and a backslash only as part of a whole escape.
pub(crate) const RULES: &[Rule] = &[
    rule(private_key::KIND, private_key::PATTERN),
    rule("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,}"),
    rule("openrouter-key", r"sk-or-v1-[A-Za-z0-9]{32,}"),
    loose("openai-key", r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{24,}"),
    rule("stripe-key", r"(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    rule("github-token", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})"),
    rule("gitlab-token", r"gl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_.-]{20,}"),
    rule("aws-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    rule("google-key", r"AIza[A-Za-z0-9_-]{35}"),
    rule("google-token", r"ya29\.[A-Za-z0-9_-]{20,}"),
    rule("slack-token", r"xox[abceoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    rule("slack-webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,}"),
    rule("npm-token", r"npm_[A-Za-z0-9]{36}"),
    rule("pypi-token", r"pypi-[A-Za-z0-9_-]{50,}"),
    loose("crates-token", r"cio[A-Za-z0-9]{32}\b"),
    rule("hugging-face-token", r"hf_[A-Za-z0-9]{30,}"),
    rule("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}"),
    rule("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    rule("telegram-token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    rule("xai-key", r"xai-[A-Za-z0-9]{40,}"),
    rule("groq-key", r"gsk_[A-Za-z0-9]{40,}"),
    rule("replicate-token", r"r8_[A-Za-z0-9]{30,}"),
    rule("perplexity-key", r"pplx-[A-Za-z0-9]{40,}"),
    rule("docker-token", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    rule("shopify-token", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    rule("atlassian-token", r"ATATT3x[A-Za-z0-9_=-]{40,}"),
    rule("linear-key", r"lin_api_[A-Za-z0-9]{32,}"),
    rule("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    rule("jwt", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    rule(
        "password-in-url",
        r"[a-z][a-z0-9+.-]{1,20}://[A-Za-z0-9._~%+-]{0,64}:(?<secret>[A-Za-z0-9._~%!&'()*+,;=?#^|-]{3,})@",
    ),
    rule(
        "password-in-command",
        concat!(
            r"\bcurl(?:[\t\x20\x21\x23-\x3a\x3c-\x5b\x5d-\x7b\x7d\x7e]|\\[\x22/\\]){0,160}?",
            r"\s(?:-[A-Za-z]{0,5}u|--user)[\s=]{0,3}(?:\\?[\x22'])?",
            r"[A-Za-z0-9._@%+-]{1,64}:(?<secret>[A-Za-z0-9._~%!*+=?#^@/-]{3,})",
        ),
    ),
    loose("bearer-token", r"(?i)bearer\s+(?<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
    loose(
        "secret",
        concat!(
            r"(?i)(?:passw(?:or)?d|passphrase|secret|token|credentials?|authorization",
            r"|(?:api|access|private|auth|encrypt(?:ion)?|signing|master|account|hmac)[_-]?key)",
            assigned!(),
            r"(?:basic\s|token\s)?",
            value!(),
        ),
    ),
    loose(
        "secret",
        // What keys of these names open is nothing: they are shown to everybody, or say where something lies.
        concat!(
            r"(?i)(?<harmless>(?:public|primary|foreign|cache|partition|sort|shard|routing|row|index|object|idempotency)[_-]?)?",
            r"(?:[_-]key(?:[_-]data)?|key[_-]data)",
            sign!(),
            value!(),
        ),
    ),
    loose(
        "secret",
        // As a word of its own it is what tests print, with the name of what has passed.
        concat!(
            r"(?i)(?:[_-]pass",
            sign!(),
            r"|(?:\b|\\[bfnrt])(?:pass(?:\\?[\x22'`])?\s{0,3}(?::=|=>|=)|(?-i:pass(?:\\?[\x22'`])?\s{0,3}:))\s{0,3})",
            value!(),
        ),
    ),
    loose(
        "secret",
        // A path after this name is where somebody works.
        concat!(
            r"(?i)pwd",
            assigned!(),
            r"(?:\\?[\x22'`])?(?<secret>[A-Za-z0-9_+!@#%^&*-][A-Za-z0-9_+/~.!@#%^&*-]{15,}=*)",
        ),
    ),
];
