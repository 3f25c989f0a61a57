//! The table of the official SDKs in the docs: nothing that they offer is missing from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rethread_claude::HookEvent;
use rethread_testkit::{PythonSdk, Sdk, cannot};

/// Returns every name that is written as code in the tables of the docs.
fn told() -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sdk.md");
    let docs = fs::read_to_string(docs).unwrap();
    let rows = docs.lines().filter(|line| line.starts_with('|'));
    let code = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    code.flat_map(names).map(str::to_owned).collect()
}

/// Returns the names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|name| !name.is_empty())
}

/// Returns the fields and methods of a type, by the line it begins with.
fn members<'a>(types: &'a str, begins: &str) -> Vec<&'a str> {
    let body = types.lines().skip_while(|line| !line.starts_with(begins)).skip(1);
    let body = body.take_while(|line| !line.starts_with('}'));
    let members = body.filter_map(|line| {
        let rest = line.strip_prefix("    ")?;
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_')?;
        (end > 0 && rest[end..].starts_with(['?', ':', '(', '<'])).then(|| &rest[..end])
    });
    members.collect()
}

/// Returns what is exported, by the words that this begins with.
fn exported<'a>(types: &'a str, begins: &'a str) -> impl Iterator<Item = &'a str> {
    types.lines().filter_map(move |line| names(line.strip_prefix(begins)?).next())
}

#[test]
fn everything_that_the_sdk_for_typescript_offers_is_in_the_table() {
    let Some(sdk) = Sdk::find() else { return cannot("the SDK for TypeScript cannot be installed") };
    let types = fs::read_to_string(sdk.types()).unwrap();
    let mut offered = Vec::new();
    for (begins, least) in [
        ("export declare type Options = {", 60),
        ("export declare interface Query ", 25),
        ("export declare type AgentDefinition = {", 15),
    ] {
        let found = members(&types, begins);
        assert!(found.len() >= least, "{begins} {found:?}");
        offered.extend(found);
    }
    offered.extend(exported(&types, "export declare function "));
    offered.extend(exported(&types, "export declare class "));
    let told = told();
    let missing: Vec<_> = offered.into_iter().filter(|name| !told.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_event_of_the_sdk_for_typescript_has_a_name_here() {
    let Some(sdk) = Sdk::find() else { return cannot("the SDK for TypeScript cannot be installed") };
    let types = fs::read_to_string(sdk.types()).unwrap();
    let line = types.lines().find(|line| line.starts_with("export declare const HOOK_EVENTS")).unwrap();
    let events: Vec<&str> = line.split('\'').skip(1).step_by(2).collect();
    assert!(events.len() >= 30, "{events:?}");
    let unknown = events.iter().filter(|name| matches!(HookEvent::from(**name), HookEvent::Other(_)));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn everything_that_the_sdk_for_python_offers_is_in_the_table() {
    let Some(sdk) = PythonSdk::find() else { return cannot("the SDK for Python cannot be installed") };
    let program = "
import dataclasses, inspect, claude_agent_sdk as sdk
names = [field.name for kind in (sdk.ClaudeAgentOptions, sdk.AgentDefinition) for field in dataclasses.fields(kind)]
names += [name for name in vars(sdk.ClaudeSDKClient) if not name.startswith('_')]
names += [name for name in sdk.__all__ if inspect.isfunction(getattr(sdk, name))]
print(' '.join(names))";
    let folder = tempfile::tempdir().unwrap();
    let output = sdk.command(folder.path(), program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let offered = String::from_utf8(output.stdout).unwrap();
    assert!(offered.split_whitespace().count() > 90, "{offered}");
    let told = told();
    // What has the same name in both is told once, as TypeScript writes it.
    let is_told = |name: &&str| told.contains(*name) || told.contains(&in_one_word(name));
    let missing: Vec<_> = offered.split_whitespace().filter(|name| !is_told(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns `fork_session` as `forkSession`.
fn in_one_word(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part[..1].to_uppercase() + &part[1..]);
    rest.fold(first, |name, part| name + &part)
}
