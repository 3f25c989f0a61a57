use crate::kit::{Home, Said};

#[test]
fn the_tour_runs_to_its_end_and_leaves_nothing_behind() {
    let home = Home::new();
    let tour = home.command(&["tour"]).env("TMPDIR", home.path()).output().unwrap();
    let (out, err) = (String::from_utf8(tour.stdout).unwrap(), String::from_utf8(tour.stderr).unwrap());
    assert_eq!((tour.status.code(), err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("of the acknowledged ones 0 are missing"), "{out}");
    assert!(
        out.contains("$ rethread rewind tour --to m3 --dry-run\n    M  parser.rs\n    D  tests\n"),
        "{out}"
    );
    assert!(out.contains("Restored 1 path, brought back 2 paths: 3 lines added, 1 removed."), "{out}");
    assert!(out.contains("$ rethread fork tour --at m2 --id tour-fork\n  tour-fork\n"), "{out}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_tour_keeps_its_store_when_asked() {
    let home = Home::new();
    let tour = home.command(&["tour", "--fast", "--keep"]).env("TMPDIR", home.path()).output().unwrap();
    let out = String::from_utf8(tour.stdout).unwrap();
    let store = out.lines().last().unwrap().split("--store ").nth(1).unwrap().trim_end_matches(" list`");
    assert_eq!(home.answer(&["--store", store, "list", "--json"]).lines().count(), 3);
}

#[test]
fn every_shell_gets_its_completions() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(home.answer(&["completions", shell]).contains("materialize"), "{shell}");
    }
    assert_eq!(home.run(&["completions", "basic"]).code, 2);
}

#[test]
fn help_and_version_are_answers() {
    let home = Home::new();
    assert_eq!(home.run(&["--version"]), Said::answer(format!("rethread {}\n", env!("CARGO_PKG_VERSION"))));
    assert!(home.answer(&["--help"]).contains("Usage: rethread [OPTIONS] <COMMAND>"));
    assert!(home.answer(&["append", "--help"]).contains("JSON"));
    let nothing = home.run(&[]);
    assert_eq!((nothing.code, nothing.out.as_str()), (2, ""));
}
